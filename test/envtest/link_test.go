package envtest_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// link is a connection to the API server that a test can cut.
type link struct {
	net.Listener

	server  string
	refused atomic.Int64 // connections that were refused during a cut

	mu    sync.Mutex
	cut   bool
	lines map[net.Conn]bool
}

func newLink(t *testing.T) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server, _, err := rest.DefaultServerUrlFor(config)
	must(t, err)
	l := &link{Listener: listener, server: server.Host, lines: map[net.Conn]bool{}}
	go l.serve()
	t.Cleanup(func() { l.sever(true); _ = l.Close() })
	return l
}

// host replaces the address of the API server in a configuration.
func (l *link) host() string { return "https://" + l.Addr().String() }

func (l *link) serve() {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		go l.carry(near)
	}
}

func (l *link) carry(near net.Conn) {
	defer l.drop(near)
	far, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer l.drop(far)
	if !l.hold(near, far) {
		l.refused.Add(1)
		return
	}
	go func() { defer l.drop(near); _, _ = io.Copy(near, far) }()
	_, _ = io.Copy(far, near)
}

// hold records both ends, unless the link is cut.
func (l *link) hold(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		l.lines[end] = !l.cut
	}
	return !l.cut
}

func (l *link) drop(end net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lines, end)
	_ = end.Close()
}

// sever cuts the link and all its connections, or restores it.
func (l *link) sever(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for end := range l.lines {
		_ = end.Close()
	}
}
