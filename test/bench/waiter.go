package main

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waiter waits until a number of objects are in the desired state.
type waiter struct {
	wanted int
	good   func(client.Object) bool
	stop   func() error

	mu      sync.Mutex
	reached map[string]bool
	full    chan struct{}
}

// expect starts to watch. Call it before the measured action, so that its own time is not
// measured.
func (s *testEnv) expect(ctx context.Context, kind client.Object, wanted int, good func(client.Object) bool) (*waiter, error) {
	informer, err := s.cache.GetInformer(ctx, kind)
	if err != nil {
		return nil, err
	}
	t := &waiter{wanted: wanted, good: good, reached: map[string]bool{}, full: make(chan struct{})}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    t.note,
		UpdateFunc: func(_, obj any) { t.note(obj) },
	})
	t.stop = func() error { return informer.RemoveEventHandler(handler) }
	return t, err
}

func (t *waiter) note(seen any) {
	obj, ok := seen.(client.Object)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	was, is := t.reached[obj.GetName()], t.good(obj)
	if is == was || len(t.reached) == t.wanted {
		return
	}
	if !is {
		delete(t.reached, obj.GetName())
		return
	}
	t.reached[obj.GetName()] = true
	if len(t.reached) == t.wanted {
		close(t.full)
	}
}

// wait returns when all objects are in the desired state at the same time.
func (t *waiter) wait(ctx context.Context) error {
	defer func() { _ = t.stop() }()
	select {
	case <-t.full:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		return fmt.Errorf("only %d of %d objects converged: %w", len(t.reached), t.wanted, ctx.Err())
	}
}
