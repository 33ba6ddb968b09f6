package consistencyclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// pageSize is the number of keys per read.
const pageSize = 5000

// retryPause is the pause between two attempts to read all keys.
const retryPause = 200 * time.Millisecond

// Lost reads back every acknowledged key, linearizably. It returns the keys that are
// missing or have another revision than the acknowledged one. The error means that the
// keys could not be read before the context ended: then the result is unknown.
func (w *Client) Lost(ctx context.Context) ([]string, error) {
	again := time.NewTicker(retryPause)
	defer again.Stop()
	for nth := 0; ; nth++ {
		found, err := w.read(ctx, nth)
		if err == nil {
			return w.missing(found), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot read back the acknowledged keys: %w", errors.Join(err, ctx.Err()))
		case <-again.C:
		}
	}
}

func (w *Client) missing(found map[string]int64) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lost []string
	for _, a := range w.acked {
		switch revision, ok := found[a.key]; {
		case !ok:
			lost = append(lost, a.key)
		case revision != a.revision:
			lost = append(lost, fmt.Sprintf("%s (acknowledged as revision %d, found as %d)", a.key, a.revision, revision))
		}
	}
	return lost
}

// read returns the revision of every key.
func (w *Client) read(ctx context.Context, nth int) (map[string]int64, error) {
	conn := w.dial(ctx, nth)
	if conn == nil {
		return nil, w.Stats().LastFailure
	}
	defer closeConn(conn)
	found := map[string]int64{}
	from := []byte(w.options.Prefix)
	for {
		response, err := w.readPage(ctx, conn, from)
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			if !bytes.Equal(kv.Key, kv.Value) {
				return nil, fmt.Errorf("%s has the value %q", kv.Key, kv.Value)
			}
			found[string(kv.Key)] = kv.ModRevision
			from = append(kv.Key, 0)
		}
		if !response.More {
			return found, nil
		}
	}
}

func (w *Client) readPage(ctx context.Context, conn *grpc.ClientConn, from []byte) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*w.options.Timeout)
	defer cancel()
	return pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: from, RangeEnd: end(w.options.Prefix), Limit: pageSize})
}

// end returns the first key after those with the prefix.
func end(prefix string) []byte {
	e := []byte(prefix)
	e[len(e)-1]++
	return e
}

// Count returns the number of keys with the prefix, including those of other clients.
func Count(ctx context.Context, o Options) (int, error) {
	found, err := (&Client{options: o.filled()}).read(ctx, 0)
	return len(found), err
}
