// Package kindcache keeps all objects of one of the operator's own kinds in memory while
// their CustomResourceDefinition exists.
package kindcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/engine/internal/crd"
)

// watchAgain is how long a failed watch waits before the next attempt.
const watchAgain = 5 * time.Second

// Cache keeps all objects of one of the operator's own kinds in memory, while its CRD
// exists. There is one for the whole process.
type Cache struct {
	Mgr   manager.Manager
	Kinds *crd.Watcher
	Gvk   schema.GroupVersionKind
	Blank client.Object
	// options say which of the objects, and indices what they are found by.
	Options cache.Options
	Indices map[string]client.IndexerFunc
	// changed is called with an object as it was and as it is; nil where there is none.
	Changed func(old, now client.Object)
	// complete is called when all objects are known, also that there are none.
	Complete func(ctx context.Context)

	store atomic.Pointer[cache.Cache]
	// known is closed once it is known which objects there are.
	Known chan struct{}
	once  sync.Once
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a standby knows them too.
func (s *Cache) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *Cache) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.whenThere(ctx); err != nil && ctx.Err() == nil {
			s.Mgr.GetLogger().Error(err, "cannot watch; it is tried again", "kind", s.Gvk.Kind, "in", watchAgain)
			select {
			case <-ctx.Done():
			case <-time.After(watchAgain):
			}
		}
	}
	return nil
}

// whenThere waits for the CRD and keeps its objects until it is gone.
func (s *Cache) whenThere(ctx context.Context) error {
	_, state, err := s.Kinds.Find(ctx, s.Gvk)
	if err != nil {
		return err
	}
	if state == crd.Absent {
		s.Complete(ctx)
		s.settle()
	}
	d, err := s.Kinds.Appear(ctx, s.Gvk)
	if err != nil {
		return err
	}
	return s.Kinds.During(ctx, d, s.keep)
}

func (s *Cache) settle() { s.once.Do(func() { close(s.Known) }) }

// Await returns when it is known which objects there are. An operator that cannot see
// what it is forbidden does nothing.
func (s *Cache) Await(ctx context.Context) {
	select {
	case <-s.Known:
	case <-ctx.Done():
	}
}

func (s *Cache) keep(ctx context.Context) error {
	store, err := cache.New(s.Mgr.GetConfig(), s.Options)
	if err != nil {
		return fmt.Errorf("cannot make a cache: %w", err)
	}
	for field, index := range s.Indices {
		if err := store.IndexField(ctx, s.Blank, field, index); err != nil {
			return fmt.Errorf("cannot index %s: %w", s.Gvk.Kind, err)
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- store.Start(ctx) }()
	if err := s.listen(ctx, store); err != nil {
		return err
	}
	s.store.Store(&store)
	defer s.store.Store(nil)
	s.Complete(ctx)
	s.settle()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// listen hears of every object.
func (s *Cache) listen(ctx context.Context, store cache.Cache) error {
	informer, err := store.GetInformer(ctx, s.Blank)
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", s.Gvk.Kind, err)
	}
	heard, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { s.Changed(nil, now.(client.Object)) },
		UpdateFunc: func(old, now any) { s.Changed(old.(client.Object), now.(client.Object)) },
		DeleteFunc: func(old any) {
			if unseen, ok := old.(toolscache.DeletedFinalStateUnknown); ok {
				old = unseen.Obj
			}
			s.Changed(old.(client.Object), nil)
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

// List reads what is known; nothing is if there is no CRD. The objects are not copies.
func (s *Cache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	store := s.store.Load()
	if store == nil {
		return nil
	}
	return (*store).List(ctx, into, append(options, client.UnsafeDisableDeepCopy)...)
}
