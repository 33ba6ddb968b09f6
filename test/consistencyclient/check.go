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

// page is how many keys are read at once.
const page = 5000

// lookAgain is the pause between two attempts to read everything.
const lookAgain = 200 * time.Millisecond

// Lost reads back every acknowledged key, linearizably, and names those that are not
// there as they were acknowledged. The error says that they could not be read before
// the context ended: then nothing is known.
func (w *Witness) Lost(ctx context.Context) ([]string, error) {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for nth := 0; ; nth++ {
		found, err := w.read(ctx, nth)
		if err == nil {
			return w.missing(found), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot read back what was written: %w", errors.Join(err, ctx.Err()))
		case <-again.C:
		}
	}
}

func (w *Witness) missing(found map[string]int64) []string {
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
func (w *Witness) read(ctx context.Context, nth int) (map[string]int64, error) {
	line := w.dial(ctx, nth)
	if line == nil {
		return nil, w.Tally().LastFailure
	}
	defer hangUp(line)
	found := map[string]int64{}
	from := []byte(w.options.Prefix)
	for {
		answer, err := w.readPage(ctx, line, from)
		if err != nil {
			return nil, err
		}
		for _, kv := range answer.Kvs {
			if !bytes.Equal(kv.Key, kv.Value) {
				return nil, fmt.Errorf("%s has the value %q", kv.Key, kv.Value)
			}
			found[string(kv.Key)] = kv.ModRevision
			from = append(kv.Key, 0)
		}
		if !answer.More {
			return found, nil
		}
	}
}

func (w *Witness) readPage(ctx context.Context, line *grpc.ClientConn, from []byte) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*w.options.Patience)
	defer cancel()
	return pb.NewKVClient(line).Range(ctx, &pb.RangeRequest{Key: from, RangeEnd: end(w.options.Prefix), Limit: page})
}

// end is the first key that does not have the prefix.
func end(prefix string) []byte {
	e := []byte(prefix)
	e[len(e)-1]++
	return e
}

// Count is how many keys with the prefix there are, whoever wrote them.
func Count(ctx context.Context, o Options) (int, error) {
	found, err := (&Witness{options: o.filled()}).read(ctx, 0)
	return len(found), err
}
