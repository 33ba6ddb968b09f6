// Package enforce keeps the cluster's policies and approvals in memory, wakes the objects
// that a change of them concerns, and writes the status of policies.
package enforce

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/crd"
	"github.com/governor-dev/governor/engine/internal/kindcache"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Store has the policies and approvals of the cluster, once for the whole process. The zero
// value has none.
type Store struct {
	policies  Objects
	Approvals Objects
	// namespaces is nil without policies.
	namespaces *namespaceLabels

	All atomic.Pointer[policy.Set]

	mu     sync.Mutex
	byName map[string]*policy.Policy
	fleets map[schema.GroupKind]Fleet
	// holding are the policies that hold a step of an object, by the object's key.
	holding map[string][]string
	// waves wake the objects that wait for a wave before theirs.
	waves map[string]func()
	// stirred has an entry when any of this has changed.
	stirred chan struct{}
}

// Objects are all objects of one kind. [kindcache.Cache] implements it.
type Objects interface {
	// List works once Await has returned.
	List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error
	Await(ctx context.Context)
}

// Fleet are all objects of one application.
type Fleet interface {
	// Peers are the objects as they are known here.
	Peers(ctx context.Context) ([]policy.Peer, error)
	// Wake reconciles one of them now.
	Wake(key types.NamespacedName)
	// HolderName returns a name of the object that is unique in the operator.
	HolderName(o policy.Object) string
}

// Watch adds to the manager what knows the policies and approvals, if its scheme
// knows their kinds.
func Watch(mgr manager.Manager, kinds *crd.Watcher, namespaces map[string]cache.Config, status bool, now func() time.Time) (*Store, error) {
	r := &Store{stirred: make(chan struct{}, 1)}
	if !mgr.GetScheme().Recognizes(v1alpha1.GroupVersion.WithKind("OperationPolicy")) {
		return r, nil
	}
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: namespaces, DefaultTransform: cache.TransformStripManagedFields(),
	}
	policies := &kindcache.Cache{
		Mgr: mgr, Kinds: kinds, Gvk: v1alpha1.GroupVersion.WithKind("OperationPolicy"), Blank: &v1alpha1.OperationPolicy{},
		Options: options, Changed: r.policyChanged, Complete: r.forgetOthers, Known: make(chan struct{}),
	}
	approvals := &kindcache.Cache{
		Mgr: mgr, Kinds: kinds, Gvk: v1alpha1.GroupVersion.WithKind("Approval"), Blank: &v1alpha1.Approval{},
		Options: options, Indices: map[string]client.IndexerFunc{ApprovedIndex: indexApproved},
		Changed: r.approvalChanged, Complete: r.readAgain, Known: make(chan struct{}),
	}
	r.policies, r.Approvals = policies, approvals
	r.namespaces = newNamespaceLabels(mgr, r.namespaceChanged, r.namespacesKnown)
	for _, c := range []*kindcache.Cache{policies, approvals, r.namespaces.cache} {
		if err := mgr.Add(c); err != nil {
			return nil, err
		}
	}
	if !status {
		return r, nil
	}
	return r, mgr.Add(&policyStatusWriter{mgr: mgr, rules: r, now: now})
}

// Await returns when all policies and approvals are known.
func (r *Store) Await(ctx context.Context) {
	if r.policies != nil {
		r.policies.Await(ctx)
		r.Approvals.Await(ctx)
	}
}

// Selecting returns the policies that are about the object.
func (r *Store) Selecting(o policy.Object) policy.Set {
	if all := r.All.Load(); all != nil {
		return all.Selecting(o)
	}
	return nil
}

// policyChanged reads the policy again, unless only its status changed, and reconciles the
// objects that it selects or selected.
func (r *Store) policyChanged(old, now client.Object) {
	if old != nil && now != nil && old.GetGeneration() == now.GetGeneration() {
		return
	}
	name := cmp.Or(now, old).GetName()
	was, is := r.learn(name, now)
	r.wakeAll(func(o policy.Object) bool {
		return was != nil && was.Selects(o) || is != nil && is.Selects(o)
	})
}

// forgetOthers drops the policies that were deleted while there was no watch.
func (r *Store) forgetOthers(ctx context.Context) {
	list := &v1alpha1.OperationPolicyList{}
	if err := r.policies.List(ctx, list); err != nil {
		return // the cache ends, and starts again
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	r.mu.Lock()
	known := slices.Collect(maps.Keys(r.byName))
	r.mu.Unlock()
	for _, name := range known {
		if there[name] {
			continue
		}
		if was, _ := r.learn(name, nil); was != nil {
			r.wakeAll(was.Selects)
		}
	}
}

func (r *Store) learn(name string, now client.Object) (was, is *policy.Policy) {
	if p, ok := now.(*v1alpha1.OperationPolicy); ok {
		is = policy.New(p)
		r.needNamespaces(is)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was = r.byName[name]
	if r.byName == nil {
		r.byName = map[string]*policy.Policy{}
	}
	delete(r.byName, name)
	if is != nil {
		r.byName[name] = is
	}
	all := policy.Set(slices.SortedFunc(maps.Values(r.byName), func(a, b *policy.Policy) int { return cmp.Compare(a.Name, b.Name) }))
	r.All.Store(&all)
	r.markDirty()
	return was, is
}

// wakeAll reconciles every object for which meant is true.
func (r *Store) wakeAll(meant func(policy.Object) bool) {
	for _, f := range r.running() {
		peers, err := f.Peers(context.Background())
		if err != nil {
			continue // its cache has ended, and with it its reconciles
		}
		for _, p := range peers {
			if meant(p.Object) {
				f.Wake(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
			}
		}
	}
}

// Peers are all objects that the operator runs.
func (r *Store) Peers(ctx context.Context) ([]policy.Peer, error) {
	var all []policy.Peer
	for _, f := range r.running() {
		some, err := f.Peers(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (r *Store) running() map[schema.GroupKind]Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.fleets)
}

// Join adds the objects of an application, until leave is called.
func (r *Store) Join(kind schema.GroupKind, f Fleet) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fleets == nil {
		r.fleets = map[schema.GroupKind]Fleet{}
	}
	r.fleets[kind] = f
	r.markDirty()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.fleets, kind)
	}
}
