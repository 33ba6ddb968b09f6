package engine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/engine/internal/wake"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// newCache returns the application's own cache: its custom resources, and what
// bears its label. Nothing else of the cluster is kept in memory.
func (s *supervisor[T, W]) newCache(ctx context.Context, names *caching.SpecManagers) (cache.Cache, error) {
	mgr := s.operator.mgr
	lean := cache.ByObject{Transform: names.Strip}
	byObject := map[client.Object]cache.ByObject{s.app.cachedObject(): lean}
	mine := labels.SelectorFromSet(labels.Set{lifecycle.LabelApp: s.app.Name})
	for _, obj := range s.app.Owns {
		byObject[obj] = cache.ByObject{Label: mine, Transform: caching.TrimLarge}
	}
	for _, w := range s.app.Watches {
		byObject[w.Object] = cache.ByObject{Label: w.selector(s.app.Name), Transform: w.transform()}
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
	watched, err := s.app.watchedObjects(s.operator.mgr.GetScheme())
	if err != nil {
		return err
	}
	for _, obj := range slices.Concat(s.app.Owns, watched) {
		if err := store.IndexField(ctx, obj, apply.OwnerIndex, apply.IndexOwner); err != nil {
			return fmt.Errorf("cannot index %T: %w", obj, err)
		}
	}
	for _, obj := range watched {
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
		source.Kind[client.Object](store, s.app.cachedObject(), &handler.EnqueueRequestForObject{}, e.ignoreOwnWrites()),
		source.Func(func(_ context.Context, q wake.Queue) error { e.queue.Begin(q); return nil }),
	}
	belongings, err := s.belongingSources(e, store)
	if err != nil {
		return err
	}
	sources = append(sources, belongings...)
	sources = append(sources, source.Kind[client.Object](store, s.app.cachedObject(), e.watchWaves()))
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

// belongingSources wake the object to which something belongs that has changed, and those that refer
// to an object of a kind that the application watches by a selector of its own.
func (s *supervisor[T, W]) belongingSources(e *engine[T, W], store cache.Cache) (all []source.Source, err error) {
	watched, err := s.app.watchedObjects(s.operator.mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	hears := wake.OwnedHandler{App: s.app.Name, Gather: s.app.Debounce, Heard: e.applyCache.Heard}
	for _, obj := range slices.Concat(s.app.Owns, watched) {
		all = append(all, source.Kind(store, obj, hears.Handler()))
	}
	for i, w := range s.app.Watches {
		if w.Selector == nil {
			continue
		}
		gvk, err := apiutil.GVKForObject(w.Object, s.operator.mgr.GetScheme())
		if err != nil {
			return nil, err
		}
		e.references.WatchedElsewhere(gvk) // here, where the driver reads it: another cache may be ahead
		all = append(all, source.Kind(store, watched[i], e.references.Handler(gvk)))
	}
	return all, nil
}

// guarded wakes objects that a driver's sentinel names.
func guarded(sentinel lifecycle.Sentinel) source.Source {
	return source.Func(func(ctx context.Context, q wake.Queue) error {
		go sentinel.Guard(ctx, func(key types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: key}) })
		return nil
	})
}

// watchWaves lets those that wait look again when an object of the application is well
// again, or not any more.
func (e *engine[T, W]) watchWaves() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, _ wake.Queue) { e.operator.policies.Broke() },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, _ wake.Queue) { e.operator.policies.Broke() },
		UpdateFunc: func(_ context.Context, u event.UpdateEvent, _ wake.Queue) {
			was, ok := e.app.typed(u.ObjectOld)
			is, same := e.app.typed(u.ObjectNew)
			if ok && same && !e.policies.Peer(was).Equal(e.policies.Peer(is)) {
				e.operator.policies.Broke()
			}
		},
	}
}

// watchIn makes the references watch kinds in a cache that keeps only names, labels and resource versions.
func (s *supervisor[T, W]) watchIn(ctx context.Context, r *wake.References, c controller.Controller) error {
	mgr := s.operator.mgr
	store, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: s.operator.options.namespaces(), DefaultTransform: wake.OnlyIdentity,
	})
	if err != nil {
		return fmt.Errorf("cannot make a cache of references: %w", err)
	}
	r.Watch = func(kind schema.GroupVersionKind) error {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return c.Watch(source.Kind[client.Object](store, obj, r.Handler(kind)))
	}
	go func() { _ = store.Start(ctx) }() // it ends without an error when the context does
	return nil
}
