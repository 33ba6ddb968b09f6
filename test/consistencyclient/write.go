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

var errNobody = errors.New("no member is there to be written to")

// write is one connection's life. The first goes to the first member that is found,
// the next to the next, and after a failure to the one that follows.
func (w *Witness) write(ctx context.Context, nth int) {
	tick := time.NewTicker(w.options.Pace)
	defer tick.Stop()
	var line *grpc.ClientConn
	for {
		select {
		case <-ctx.Done():
			hangUp(line)
			return
		case <-tick.C:
		}
		if line == nil {
			line = w.dial(ctx, nth)
			nth++
		}
		if line != nil && !w.put(ctx, line) {
			hangUp(line)
			line = nil
		}
	}
}

func hangUp(line *grpc.ClientConn) {
	if line != nil {
		_ = line.Close()
	}
}

// dial returns nil if nobody is there.
func (w *Witness) dial(ctx context.Context, nth int) *grpc.ClientConn {
	ctx, cancel := context.WithTimeout(ctx, w.options.Patience)
	defer cancel()
	found, err := w.options.Find(ctx)
	if err == nil && len(found) == 0 {
		err = errNobody
	}
	var line *grpc.ClientConn
	if err == nil {
		line, err = connect(found[nth%len(found)], w.options.TLS)
	}
	if err != nil {
		w.remember(err)
		return nil
	}
	return line
}

func connect(address string, config *tls.Config) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if config != nil {
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secure),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry())
}

// put writes one new key and says whether etcd acknowledged it.
func (w *Witness) put(ctx context.Context, line *grpc.ClientConn) bool {
	key := w.newKey()
	limited, cancel := context.WithTimeout(ctx, w.options.Patience)
	defer cancel()
	answer, err := pb.NewKVClient(line).Put(limited, &pb.PutRequest{Key: []byte(key), Value: []byte(key)})
	if err != nil {
		if ctx.Err() == nil {
			w.missed(err)
		}
		return false
	}
	w.note(key, answer.Header)
	return true
}

func (w *Witness) newKey() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return fmt.Sprintf("%s%08d", w.options.Prefix, w.next)
}

func (w *Witness) note(key string, h *pb.ResponseHeader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = append(w.acked, ack{key, h.GetRevision(), time.Now()})
	w.clusters[h.GetClusterId()] = true
}

func (w *Witness) missed(err error) {
	w.remember(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed++
}

func (w *Witness) remember(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}
