package engine

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// newCache returns the application's own cache: its custom resources, and what
// bears its label. Nothing else of the cluster is kept in memory.
func (s *supervisor[T, W]) newCache(ctx context.Context, names *caching.SpecManagers) (cache.Cache, error) {
	mgr := s.operator.mgr
	lean := cache.ByObject{Transform: names.Strip}
	byObject := map[client.Object]cache.ByObject{s.app.newObject(): lean}
	mine := labels.SelectorFromSet(labels.Set{lifecycle.LabelApp: s.app.Name})
	for _, obj := range s.app.Owns {
		byObject[obj] = cache.ByObject{Label: mine}
	}
	for _, obj := range s.app.Watches {
		byObject[obj] = cache.ByObject{Label: mine, Transform: caching.Trim}
	}
	store, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: s.operator.options.namespaces(), ByObject: byObject,
		ReaderFailOnMissingInformer: true, // an undeclared kind is a mistake, not a new watch
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}
	return store, s.index(ctx, store)
}

func (s *supervisor[T, W]) index(ctx context.Context, store cache.Cache) error {
	for _, obj := range slices.Concat(s.app.Owns, s.app.Watches) {
		if err := store.IndexField(ctx, obj, apply.OwnerIndex, apply.IndexOwner); err != nil {
			return fmt.Errorf("cannot index %T: %w", obj, err)
		}
	}
	for _, obj := range s.app.Watches {
		if err := store.IndexField(ctx, obj, caching.InstanceIndex, caching.IndexInstance); err != nil {
			return fmt.Errorf("cannot index %T: %w", obj, err)
		}
	}
	return nil
}

func (o Options) namespaces() map[string]cache.Config {
	if len(o.Namespaces) == 0 {
		return nil
	}
	byName := map[string]cache.Config{}
	for _, ns := range o.Namespaces {
		byName[ns] = cache.Config{}
	}
	return byName
}

// ignoreOwnWrites does not hear what the engine itself wrote into the object: a status says what
// is known. What it provided it hears, for a planner may wait for it.
func (e *engine[T, W]) ignoreOwnWrites() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		return !e.tracker.IsOwnWrite(client.ObjectKeyFromObject(u.ObjectNew), u.ObjectNew)
	}}
}

// watch wakes an object when it, or anything that belongs to it, changes.
func (s *supervisor[T, W]) watch(c controller.Controller, e *engine[T, W], store cache.Cache) error {
	sources := []source.Source{
		source.Kind[client.Object](store, s.app.newObject(), &handler.EnqueueRequestForObject{}, e.ignoreOwnWrites()),
		source.Func(func(_ context.Context, q queue) error { e.queue.Store(&q); return nil }),
	}
	hears := ownedHandler{gather: s.app.Debounce, heard: e.applyCache.Heard}
	for _, obj := range slices.Concat(s.app.Owns, s.app.Watches) {
		sources = append(sources, source.Kind(store, obj, hears.belongings()))
	}
	sources = append(sources, source.Kind[client.Object](store, s.app.newObject(), e.watchWaves()))
	if sentinel, ok := e.driver.(lifecycle.Sentinel); ok {
		sources = append(sources, guarded(sentinel))
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("cannot watch for %s: %w", s.app.Name, err)
		}
	}
	return nil
}

// guarded wakes objects that a driver's sentinel names.
func guarded(sentinel lifecycle.Sentinel) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		go sentinel.Guard(ctx, func(key types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: key}) })
		return nil
	})
}

// watchWaves lets those that wait look again when an object of the application is well
// again, or not any more.
func (e *engine[T, W]) watchWaves() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, _ queue) { e.operator.policies.Broke() },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, _ queue) { e.operator.policies.Broke() },
		UpdateFunc: func(_ context.Context, u event.UpdateEvent, _ queue) {
			was, ok := u.ObjectOld.(T)
			is, same := u.ObjectNew.(T)
			if ok && same && !e.peer(was).Equal(e.peer(is)) {
				e.operator.policies.Broke()
			}
		},
	}
}
