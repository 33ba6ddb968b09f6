package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	// hands is the number of clients that read and write the same few registers.
	hands     = 3
	registers = 3
	// checkWithin limits the search for an order that explains the history.
	checkWithin = 30 * time.Second
)

// operation is a client's request to one register: a write of a new value, or a read.
type operation struct {
	register string
	write    bool
	value    string
}

// result is the result of a read, or an unknown outcome.
type result struct {
	value   string
	unknown bool
}

// historian reads and writes registers, and keeps the history.
type historian struct {
	*subject
	cancel context.CancelFunc
	all    sync.WaitGroup
	began  time.Time

	// epoch selects new registers after each write with an unknown outcome: many of those in one
	// register permit too many orders.
	epoch atomic.Int64

	mu      sync.Mutex
	history []porcupine.Operation
}

func (s *subject) record(ctx context.Context) *historian {
	ctx, cancel := context.WithCancel(ctx)
	h := &historian{subject: s, cancel: cancel, began: time.Now()}
	for hand := range hands {
		h.all.Go(func() { h.work(ctx, hand) })
	}
	return h
}

func (h *historian) work(ctx context.Context, hand int) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var line *grpc.ClientConn
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if line == nil {
			line = h.connect(ctx, hand+n)
		}
		if line != nil && !h.once(ctx, line, hand, n) {
			_ = line.Close()
			line = nil
		}
	}
}

func (h *historian) connect(ctx context.Context, nth int) *grpc.ClientConn {
	addresses, _ := h.addresses(ctx)
	if len(addresses) == 0 {
		return nil
	}
	line, err := h.dial(addresses[nth%len(addresses)])
	if err != nil {
		return nil
	}
	return line
}

// once performs one operation. It omits a failed read; a failed write may take effect at any later
// time.
func (h *historian) once(ctx context.Context, line *grpc.ClientConn, hand, n int) bool {
	op := operation{
		register: fmt.Sprintf("register/%d/%d", h.epoch.Load(), n%registers), write: (n/registers+hand)%2 == 0, value: fmt.Sprintf("%d-%d", hand, n),
	}
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	call := time.Since(h.began)
	got, err := h.request(limited, line, op)
	done := porcupine.Operation{ClientId: hand, Input: op, Call: int64(call), Output: result{value: got, unknown: err != nil}, Return: int64(time.Since(h.began))}
	if err != nil {
		done.Return = math.MaxInt64
	}
	if err != nil && op.write {
		h.epoch.Add(1)
	}
	if err == nil || op.write {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.history = append(h.history, done)
	}
	return err == nil
}

func (h *historian) request(ctx context.Context, line *grpc.ClientConn, op operation) (string, error) {
	kv := pb.NewKVClient(line)
	if op.write {
		_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte(op.register), Value: []byte(op.value)})
		return "", err
	}
	answer, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(op.register)})
	if err != nil || len(answer.Kvs) == 0 {
		return "", err
	}
	return string(answer.Kvs[0].Value), nil
}

// end ends the recording.
func (h *historian) end() {
	h.cancel()
	h.all.Wait()
}

// check returns an error if no order explains the history, which has ended.
func (h *historian) check() error {
	switch porcupine.CheckOperationsTimeout(registerModel, h.history, checkWithin) {
	case porcupine.Illegal:
		return errors.New("reads and writes of a register are not linearizable")
	case porcupine.Unknown:
		h.say("%s: linearizability is unknown: %d operations took longer than %s", h.Key.Namespace, len(h.history), checkWithin)
	}
	return nil
}

// registerModel is a register for each key, empty at first.
var registerModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, o := range history {
			of := o.Input.(operation).register
			parts[of] = append(parts[of], o)
		}
		all := make([][]porcupine.Operation, 0, len(parts))
		for _, p := range parts {
			all = append(all, p)
		}
		return all
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if op := input.(operation); op.write {
			return true, op.value
		}
		return output.(result).value == state, state
	},
}
