package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// policyStore are what people say may be done: the cluster's policies and approvals, known
// once to the whole process. The zero value knows of none.
type policyStore struct {
	policies  *kindCache
	approvals *kindCache

	all atomic.Pointer[policy.Set]

	mu     sync.Mutex
	byName map[string]*policy.Policy
	fleets map[schema.GroupKind]fleet
	// holding are the policies that hold a step of an object, by who it is.
	holding map[string][]string
	// waves wake the objects that wait for a wave before theirs.
	waves map[string]func()
	// stirred has an entry when any of this has changed.
	stirred chan struct{}
}

// fleet are all objects of one application.
type fleet interface {
	// peers are the objects as they are known here.
	peers(ctx context.Context) ([]policy.Peer, error)
	// wake lets one of them take another turn now.
	wake(key types.NamespacedName)
	// called is how one of them is called in the whole operator.
	called(o policy.Object) string
}

// watchRules adds to the manager what knows the policies and approvals, if its scheme
// knows their kinds.
func watchRules(mgr manager.Manager, kinds *crdWatcher, o Options) (*policyStore, error) {
	r := &policyStore{stirred: make(chan struct{}, 1)}
	if !mgr.GetScheme().Recognizes(v1alpha1.GroupVersion.WithKind("OperationPolicy")) {
		return r, nil
	}
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: o.namespaces(), DefaultTransform: cache.TransformStripManagedFields(),
	}
	r.policies = &kindCache{
		mgr: mgr, kinds: kinds, gvk: v1alpha1.GroupVersion.WithKind("OperationPolicy"), blank: &v1alpha1.OperationPolicy{},
		options: options, changed: r.policyChanged, complete: r.forgetOthers, known: make(chan struct{}),
	}
	r.approvals = &kindCache{
		mgr: mgr, kinds: kinds, gvk: v1alpha1.GroupVersion.WithKind("Approval"), blank: &v1alpha1.Approval{},
		options: options, indices: map[string]client.IndexerFunc{approvedIndex: indexApproved},
		changed: r.approvalChanged, complete: r.readAgain, known: make(chan struct{}),
	}
	if err := mgr.Add(r.policies); err != nil {
		return nil, err
	}
	if err := mgr.Add(r.approvals); err != nil {
		return nil, err
	}
	if !o.PolicyStatus {
		return r, nil
	}
	return r, mgr.Add(&policyStatusWriter{mgr: mgr, rules: r, now: o.Now})
}

// await returns when it is known what is forbidden.
func (r *policyStore) await(ctx context.Context) {
	if r.policies != nil {
		r.policies.await(ctx)
		r.approvals.await(ctx)
	}
}

// selecting returns the policies that are about the object.
func (r *policyStore) selecting(o policy.Object) policy.Set {
	if all := r.all.Load(); all != nil {
		return all.Selecting(o)
	}
	return nil
}

// policyChanged reads the policy anew, unless only its status changed, and wakes the
// objects that it selects or has selected.
func (r *policyStore) policyChanged(old, now client.Object) {
	if old != nil && now != nil && old.GetGeneration() == now.GetGeneration() {
		return
	}
	name := cmp.Or(now, old).GetName()
	was, is := r.learn(name, now)
	r.wakeAll(func(o policy.Object) bool {
		return was != nil && was.Selects(o) || is != nil && is.Selects(o)
	})
}

// forgetOthers drops the policies that went while nobody watched.
func (r *policyStore) forgetOthers(ctx context.Context) {
	list := &v1alpha1.OperationPolicyList{}
	if err := r.policies.list(ctx, list); err != nil {
		return // it ends, and begins anew
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

func (r *policyStore) learn(name string, now client.Object) (was, is *policy.Policy) {
	if p, ok := now.(*v1alpha1.OperationPolicy); ok {
		is = policy.New(p)
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
	r.all.Store(&all)
	r.markDirty()
	return was, is
}

// wakeAll wakes every object that is meant.
func (r *policyStore) wakeAll(meant func(policy.Object) bool) {
	for _, f := range r.running() {
		peers, err := f.peers(context.Background())
		if err != nil {
			continue // its cache has ended, and with it its turns
		}
		for _, p := range peers {
			if meant(p.Object) {
				f.wake(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
			}
		}
	}
}

// peers are all objects that the operator runs.
func (r *policyStore) peers(ctx context.Context) ([]policy.Peer, error) {
	var all []policy.Peer
	for _, f := range r.running() {
		some, err := f.peers(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (r *policyStore) running() map[schema.GroupKind]fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.fleets)
}

// join makes an application's objects known to the others, until leave is called.
func (r *policyStore) join(kind schema.GroupKind, f fleet) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fleets == nil {
		r.fleets = map[schema.GroupKind]fleet{}
	}
	r.fleets[kind] = f
	r.markDirty()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.fleets, kind)
	}
}
