package engine

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/governor-dev/governor/lifecycle"
)

// references reconciles the custom resources that use a changed object without owning it. The
// watch of a kind begins with the first reference to it: an application without references
// costs nothing.
type references struct {
	// watch begins to watch the kind.
	watch func(schema.GroupVersionKind) error

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
	users   map[lifecycle.Reference]map[types.NamespacedName]bool
	of      map[types.NamespacedName][]lifecycle.Reference
}

func newReferences() *references {
	return &references{
		watched: map[schema.GroupVersionKind]bool{}, of: map[types.NamespacedName][]lifecycle.Reference{},
		users: map[lifecycle.Reference]map[types.NamespacedName]bool{},
	}
}

// set replaces the references of the custom resource, and watches their kinds.
func (r *references) set(key types.NamespacedName, all []lifecycle.Reference) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.of[key] {
		if delete(r.users[ref], key); len(r.users[ref]) == 0 {
			delete(r.users, ref)
		}
	}
	delete(r.of, key)
	for _, ref := range all {
		if r.users[ref] == nil {
			r.users[ref] = map[types.NamespacedName]bool{}
		}
		r.users[ref][key] = true
		r.of[key] = all
		if r.watched[ref.Kind] {
			continue
		}
		if err := r.watch(ref.Kind); err != nil {
			return fmt.Errorf("cannot watch %s: %w", ref.Kind.Kind, err)
		}
		r.watched[ref.Kind] = true
	}
	return nil
}

// refer notes the references of the object before the reconcile reads the objects themselves: a
// later change is then heard. A kind that cannot be watched does not stop the reconcile.
func (e *engine[T, W]) refer(ctx context.Context, r *reconciliation[T, W]) {
	if e.app.Abilities.References == nil {
		return
	}
	if err := e.references.set(r.key, e.app.Abilities.References(r.obj)); err != nil {
		logf.FromContext(ctx).Error(err, "changes of objects that it uses are not noticed at once")
	}
}

// usersOf are the custom resources that refer to the object.
func (r *references) usersOf(ref lifecycle.Reference) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []types.NamespacedName
	for key := range r.users[ref] {
		all = append(all, key)
	}
	return all
}

// handler reconciles the users of each changed object of the kind. The first list counts as a change: an object
// may have changed after the reconcile that read it, and before the watch began.
func (r *references) handler(kind schema.GroupVersionKind) handler.EventHandler {
	wake := func(q queue, obj client.Object) {
		for _, key := range r.usersOf(lifecycle.Reference{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				wake(q, e.ObjectNew)
			}
		},
	}
}

// watchIn makes the references watch kinds in a cache that keeps only names and resource versions.
func (s *supervisor[T, W]) watchIn(ctx context.Context, r *references, c controller.Controller) error {
	mgr := s.operator.mgr
	store, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: s.operator.options.namespaces(), DefaultTransform: onlyName,
	})
	if err != nil {
		return fmt.Errorf("cannot make a cache of references: %w", err)
	}
	r.watch = func(kind schema.GroupVersionKind) error {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return c.Watch(source.Kind[client.Object](store, obj, r.handler(kind)))
	}
	go func() { _ = store.Start(ctx) }() // it ends without an error when the context does
	return nil
}

// onlyName drops all metadata that the references do not need: a cluster may have many Secrets.
func onlyName(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	return obj, nil
}
