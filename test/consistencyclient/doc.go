// Package consistencyclient is an etcd client that records the writes that etcd
// acknowledged. Tests, the demo and the benchmark run it while they inject faults.
// Afterwards they check whether a write was lost, and how long writes were unavailable.
//
// It behaves like a client of the Service. Each of its connections uses one member until
// that member fails, and then another ready member. It never writes a key twice, so each
// acknowledged key must later have the revision that etcd acknowledged.
package consistencyclient
