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

// buffer is how much is read from a connection at once, and written. Questions and answers
// are a few hundred bytes, and grpc keeps 32 KiB for each as long as a connection lives.
const buffer = 4 << 10

// window is how much a member may send unasked: the least that grpc has. With a window
// of its own choice it measures the line by a ping for every answer.
const window = 64 << 10

// idle is when an unused connection is given up; a member is asked more often.
const idle = 2 * time.Minute

// connections are the connections to members, kept from turn to turn: a handshake costs
// more than all that is asked.
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

// to returns a connection to whom at the address, whose certificate must have the
// name. One to another address, or with other keys, is replaced.
func (l *connections) to(whom, address, name string, k keys, now time.Time) (*grpc.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	have := l.open[whom]
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
	l.open[whom] = &connection{ClientConn: conn, address: address, digest: k.digest, used: now}
	return conn, nil
}

func (l *connections) drop(whom string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have := l.open[whom]; have != nil {
		_ = have.Close()
		delete(l.open, whom)
	}
}

// dial gives an attempt up as soon as nobody waits for it any more: TCP itself asks who
// was away ever more seldom.
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

// sweep closes what nobody has used for a while: the member or its cluster is gone.
func (l *connections) sweep(now time.Time) {
	if now.Sub(l.swept) < idle {
		return
	}
	l.swept = now
	for whom, open := range l.open {
		if now.Sub(open.used) > idle {
			_ = open.Close()
			delete(l.open, whom)
		}
	}
}
