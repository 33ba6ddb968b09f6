package consistencyclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

var errNoMember = errors.New("no member is available")

// write is the loop of one connection. The nth connection starts with the nth member
// found, and uses the next one after a failure.
func (w *Client) write(ctx context.Context, nth int) {
	tick := time.NewTicker(w.options.Interval)
	defer tick.Stop()
	var conn *grpc.ClientConn
	for {
		select {
		case <-ctx.Done():
			closeConn(conn)
			return
		case <-tick.C:
		}
		if conn == nil {
			conn = w.dial(ctx, nth)
			nth++
		}
		if conn != nil && !w.put(ctx, conn) {
			closeConn(conn)
			conn = nil
		}
	}
}

func closeConn(conn *grpc.ClientConn) {
	if conn != nil {
		_ = conn.Close()
	}
}

// dial returns nil if no member is available.
func (w *Client) dial(ctx context.Context, nth int) *grpc.ClientConn {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	found, err := w.options.Find(ctx)
	if err == nil && len(found) == 0 {
		err = errNoMember
	}
	var conn *grpc.ClientConn
	if err == nil {
		conn, err = connect(found[nth%len(found)], w.options.TLS)
	}
	if err != nil {
		w.setFailure(err)
		return nil
	}
	return conn
}

func connect(address string, config *tls.Config) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if config != nil {
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry())
}

// put writes one new key and reports whether etcd acknowledged it.
func (w *Client) put(ctx context.Context, conn *grpc.ClientConn) bool {
	key := w.newKey()
	limited, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	response, err := pb.NewKVClient(conn).Put(limited, &pb.PutRequest{Key: []byte(key), Value: []byte(key)})
	if err != nil {
		if ctx.Err() == nil {
			w.countFailure(err)
		}
		return false
	}
	w.acknowledge(key, response.Header)
	return true
}

func (w *Client) newKey() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return fmt.Sprintf("%s%08d", w.options.Prefix, w.next)
}

func (w *Client) acknowledge(key string, h *pb.ResponseHeader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = append(w.acked, ack{key, h.GetRevision(), time.Now()})
	w.clusters[h.GetClusterId()] = true
}

func (w *Client) countFailure(err error) {
	w.setFailure(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed++
}

func (w *Client) setFailure(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}
