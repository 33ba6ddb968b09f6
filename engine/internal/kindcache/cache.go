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
)

// watchAgain is how long a failed watch waits before the next attempt.
const watchAgain = 5 * time.Second

// Kinds knows which kinds the API server serves; [crd.Watcher] implements it.
type Kinds interface {
	// IsAbsent reports whether the kind has no CRD.
	IsAbsent(ctx context.Context, gvk schema.GroupVersionKind) (bool, error)
	// While waits until the kind is served, and calls run until its CRD is gone.
	While(ctx context.Context, gvk schema.GroupVersionKind, run func(context.Context) error) error
}

// Cache keeps all objects of one of the operator's own kinds in memory, while its CRD
// exists. There is one for the whole process.
type Cache struct {
	Mgr   manager.Manager
	Kinds Kinds
	Gvk   schema.GroupVersionKind
	Blank client.Object
	// Options select the objects, and Indices are the fields by which they are found.
	Options cache.Options
	Indices map[string]client.IndexerFunc
	// Changed is called with the old and the new object; nil where there is none.
	Changed func(old, now client.Object)
	// Complete is called when all objects are known, also if there are none.
	Complete func(ctx context.Context)

	store atomic.Pointer[cache.Cache]
	// Known is closed after the first Complete.
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
	absent, err := s.Kinds.IsAbsent(ctx, s.Gvk)
	if err != nil {
		return err
	}
	if absent {
		s.Complete(ctx)
		s.settle()
	}
	return s.Kinds.While(ctx, s.Gvk, s.keep)
}

func (s *Cache) settle() { s.once.Do(func() { close(s.Known) }) }

// Await returns when all objects are known. An operator that does not know the policies takes no step.
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

// listen reports every object to Changed, and returns after the first list.
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

// List reads the objects from memory; there are none without a CRD. The objects are not copies.
func (s *Cache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	store := s.store.Load()
	if store == nil {
		return nil
	}
	return (*store).List(ctx, into, append(options, client.UnsafeDisableDeepCopy)...)
}
