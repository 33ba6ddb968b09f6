// Package consistencyclient is a client of etcd that remembers what etcd acknowledged. Tests,
// the demo and the benchmark let one write while they break things, and ask it
// afterwards whether anything was lost, and how long nobody could write.
//
// It behaves as a client of the Service does: each of its connections goes to one
// member until that fails, and then to another one that is ready. It never writes a
// key twice, so each acknowledged key must later be found with the revision that
// etcd answered with.
package consistencyclient
