package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// kindCache keeps all objects of one of the operator's own kinds in memory, while its CRD
// exists. There is one for the whole process.
type kindCache struct {
	mgr   manager.Manager
	kinds *crdWatcher
	gvk   schema.GroupVersionKind
	blank client.Object
	// options say which of the objects, and indices what they are found by.
	options cache.Options
	indices map[string]client.IndexerFunc
	// changed is called with an object as it was and as it is; nil where there is none.
	changed func(old, now client.Object)
	// complete is called when all objects are known, also that there are none.
	complete func(ctx context.Context)

	store atomic.Pointer[cache.Cache]
	// known is closed once it is known which objects there are.
	known chan struct{}
	once  sync.Once
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a standby knows them too.
func (s *kindCache) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *kindCache) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.whenThere(ctx); err != nil && ctx.Err() == nil {
			s.mgr.GetLogger().Error(err, "cannot watch; it is tried again", "kind", s.gvk.Kind, "in", again)
			pause(ctx, again)
		}
	}
	return nil
}

// whenThere waits for the CRD and keeps its objects until it is gone.
func (s *kindCache) whenThere(ctx context.Context) error {
	_, state, err := s.kinds.find(ctx, s.gvk)
	if err != nil {
		return err
	}
	if state == absent {
		s.complete(ctx)
		s.settle()
	}
	d, err := s.kinds.appear(ctx, s.gvk)
	if err != nil {
		return err
	}
	return s.kinds.during(ctx, d, s.keep)
}

func (s *kindCache) settle() { s.once.Do(func() { close(s.known) }) }

// await returns when it is known which objects there are. An operator that cannot see
// what it is forbidden does nothing.
func (s *kindCache) await(ctx context.Context) {
	select {
	case <-s.known:
	case <-ctx.Done():
	}
}

func (s *kindCache) keep(ctx context.Context) error {
	store, err := cache.New(s.mgr.GetConfig(), s.options)
	if err != nil {
		return fmt.Errorf("cannot make a cache: %w", err)
	}
	for field, index := range s.indices {
		if err := store.IndexField(ctx, s.blank, field, index); err != nil {
			return fmt.Errorf("cannot index %s: %w", s.gvk.Kind, err)
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- store.Start(ctx) }()
	if err := s.listen(ctx, store); err != nil {
		return err
	}
	s.store.Store(&store)
	defer s.store.Store(nil)
	s.complete(ctx)
	s.settle()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// listen hears of every object.
func (s *kindCache) listen(ctx context.Context, store cache.Cache) error {
	informer, err := store.GetInformer(ctx, s.blank)
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", s.gvk.Kind, err)
	}
	heard, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { s.changed(nil, now.(client.Object)) },
		UpdateFunc: func(old, now any) { s.changed(old.(client.Object), now.(client.Object)) },
		DeleteFunc: func(old any) {
			if unseen, ok := old.(toolscache.DeletedFinalStateUnknown); ok {
				old = unseen.Obj
			}
			s.changed(old.(client.Object), nil)
		},
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), heard.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// list reads what is known; nothing is if there is no CRD. The objects are not copies.
func (s *kindCache) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	store := s.store.Load()
	if store == nil {
		return nil
	}
	return (*store).List(ctx, into, append(options, client.UnsafeDisableDeepCopy)...)
}
