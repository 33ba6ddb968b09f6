package enforce

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/engine/internal/kindcache"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// namespaceGrace is how long a policy that selects by labels of namespaces waits for them
// before it is in effect without them.
const namespaceGrace = 10 * time.Second

// namespaceLabels knows the labels of all namespaces. Its watch starts when the first policy
// selects by them: without such a policy it costs nothing, and needs no rights.
type namespaceLabels struct {
	cache  *kindcache.Cache
	needed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	byName map[string]map[string]string
}

func newNamespaceLabels(mgr manager.Manager, changed func(old, now client.Object), complete func(context.Context)) *namespaceLabels {
	n := &namespaceLabels{needed: make(chan struct{}), byName: map[string]map[string]string{}}
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	blank := &metav1.PartialObjectMetadata{}
	blank.SetGroupVersionKind(kind)
	n.cache = &kindcache.Cache{
		Mgr: mgr, Kinds: n, Gvk: kind, Blank: blank, Changed: changed, Complete: complete, Known: make(chan struct{}),
		Options: cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: onlyLabels,
		},
	}
	return n
}

// IsAbsent implements kindcache.Kinds: every API server serves namespaces.
func (n *namespaceLabels) IsAbsent(context.Context, schema.GroupVersionKind) (bool, error) {
	return false, nil
}

// While implements kindcache.Kinds: it runs as soon as a policy needs it.
func (n *namespaceLabels) While(ctx context.Context, _ schema.GroupVersionKind, run func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.needed:
		return run(ctx)
	}
}

// need starts the watch, and the first call waits for it.
func (n *namespaceLabels) need() {
	n.once.Do(func() {
		close(n.needed)
		ctx, cancel := context.WithTimeout(context.Background(), namespaceGrace)
		defer cancel()
		n.cache.Await(ctx)
	})
}

// known reports whether the labels of all namespaces are known.
func (n *namespaceLabels) known() bool {
	select {
	case <-n.cache.Known:
		return true
	default:
		return false
	}
}

func (n *namespaceLabels) of(name string) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name]
}

// set records the labels of the namespace, nil for one that is gone, and returns the former ones.
func (n *namespaceLabels) set(name string, labels map[string]string) (was map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was = n.byName[name]
	delete(n.byName, name)
	if labels != nil {
		n.byName[name] = labels
	}
	return was
}

// onlyLabels drops all other metadata.
func onlyLabels(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels}
	}
	return in, nil
}

// NamespaceLabels returns the labels of the namespace; nil if they are not known.
func (r *Store) NamespaceLabels(name string) map[string]string {
	if r == nil || r.namespaces == nil {
		return nil
	}
	return r.namespaces.of(name)
}

// needNamespaces prepares for a policy that selects by labels of namespaces.
func (r *Store) needNamespaces(p *policy.Policy) {
	if r.namespaces != nil && p != nil && p.SelectsByNamespace() {
		r.namespaces.need()
	}
}

// namespaceChanged reconciles the objects of the namespace that other policies select now.
func (r *Store) namespaceChanged(old, now client.Object) {
	name := cmp.Or(now, old).GetName()
	var is map[string]string
	if now != nil {
		is = maps.Clone(now.GetLabels())
		if is == nil {
			is = map[string]string{} // known to have none
		}
	}
	was := r.namespaces.set(name, is)
	if !r.namespaces.known() || maps.Equal(was, is) {
		return
	}
	r.markDirty()
	r.wakeAll(func(o policy.Object) bool {
		before, after := o, o
		before.NamespaceLabels, after.NamespaceLabels = was, is
		selects := r.Selecting(after)
		inPart := was == nil && slices.ContainsFunc(selects, (*policy.Policy).SelectsByNamespace) // only what holds has counted
		return o.Namespace == name && (inPart || !slices.Equal(r.Selecting(before).Names(), selects.Names()))
	})
}

// namespacesKnown reconciles the objects that policies selected without the labels.
func (r *Store) namespacesKnown(context.Context) {
	r.markDirty()
	r.wakeAll(func(o policy.Object) bool {
		o.NamespaceLabels = nil
		return slices.ContainsFunc(r.Selecting(o), (*policy.Policy).SelectsByNamespace)
	})
}
