package driver

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// buffer is the size of the read and write buffers of a connection. Requests and answers have a
// few hundred bytes, and grpc keeps 32 KiB for each buffer as long as a connection exists.
const buffer = 4 << 10

// window is how much a member may send without an acknowledgment: the minimum of grpc. With a
// dynamic window grpc pings the peer for every answer to measure the connection.
const window = 64 << 10

// idle is when an unused connection is closed; Governor queries members more often.
const idle = 2 * time.Minute

// connections keeps the connections to members between reconciles: a handshake costs more than
// all queries.
type connections struct {
	mu    sync.Mutex
	open  map[string]*connection
	swept time.Time
}

type connection struct {
	*grpc.ClientConn
	address, digest string
	used            time.Time
}

func newConnections() *connections { return &connections{open: map[string]*connection{}} }

// get returns a connection to the member with the key at the address, whose certificate must
// contain the name. It replaces a connection to another address, or with other certificates.
func (l *connections) get(key, address, name string, k keys, now time.Time) (*grpc.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	have := l.open[key]
	if have != nil && have.address == address && have.digest == k.digest {
		have.used = now
		return have.ClientConn, nil
	}
	if have != nil {
		_ = have.Close()
	}
	conn, err := dial(address, name, k.config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach %s: %w", address, err)
	}
	l.open[key] = &connection{ClientConn: conn, address: address, digest: k.digest, used: now}
	return conn, nil
}

func (l *connections) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have := l.open[key]; have != nil {
		_ = have.Close()
		delete(l.open, key)
	}
}

func (l *connections) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, open := range l.open {
		_ = open.Close()
		delete(l.open, key)
	}
}

// dial limits a connection attempt to answerWithin: TCP retries an unreachable peer at growing
// intervals.
func dial(address, name string, config *tls.Config) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if config != nil {
		config = config.Clone()
		config.ServerName = name
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure),
		grpc.WithIdleTimeout(idle), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: answerWithin}),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer), grpc.WithStaticStreamWindowSize(window))
}

// sweep closes connections that have been unused for a while: the member or its cluster was
// deleted.
func (l *connections) sweep(now time.Time) {
	if now.Sub(l.swept) < idle {
		return
	}
	l.swept = now
	for key, open := range l.open {
		if now.Sub(open.used) > idle {
			_ = open.Close()
			delete(l.open, key)
		}
	}
}
