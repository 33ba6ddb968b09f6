package wake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// namespaceKind is the kind whose labels a NamespaceSelector selects by.
var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// References finds the custom resources that use an object without owning it. The watch of a
// kind begins with the first reference to it: an application without references costs nothing.
type References struct {
	// Watch begins to watch the kind.
	Watch func(schema.GroupVersionKind) error

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
	// of are the references of each custom resource, as users and selecting have them.
	of        map[types.NamespacedName][]referenced
	users     map[referenced]map[types.NamespacedName]bool
	selecting map[schema.GroupVersionKind]map[types.NamespacedName][]selection
	// namespaces are the labels of those that were seen.
	namespaces map[string]labels.Set
}

// referenced is an object that is referred to by name, or a kind of which objects are selected.
type referenced struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// selection is a reference by labels.
type selection struct {
	namespace           string // empty means all
	namespaces, objects labels.Selector
}

// NewReferences returns no references; Watch must be set before the first one.
func NewReferences() *References {
	return &References{
		watched: map[schema.GroupVersionKind]bool{}, of: map[types.NamespacedName][]referenced{},
		users:      map[referenced]map[types.NamespacedName]bool{},
		selecting:  map[schema.GroupVersionKind]map[types.NamespacedName][]selection{},
		namespaces: map[string]labels.Set{},
	}
}

// Set replaces the references of the custom resource, and watches their kinds. A reference with
// a mistake has no effect on the others.
func (r *References) Set(key types.NamespacedName, all []lifecycle.Reference) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(key)
	var errs []error
	for _, ref := range all {
		errs = append(errs, r.add(key, ref))
	}
	return errors.Join(errs...)
}

func (r *References) drop(key types.NamespacedName) {
	for _, to := range r.of[key] {
		if delete(r.users[to], key); len(r.users[to]) == 0 {
			delete(r.users, to)
		}
		if delete(r.selecting[to.kind], key); len(r.selecting[to.kind]) == 0 {
			delete(r.selecting, to.kind)
		}
	}
	delete(r.of, key)
}

func (r *References) add(key types.NamespacedName, ref lifecycle.Reference) error {
	to := referenced{ref.Kind, ref.Namespace, ref.Name}
	if ref.Selector != nil {
		s, err := selectionOf(ref)
		if err != nil {
			return err
		}
		to = referenced{kind: ref.Kind}
		if r.selecting[ref.Kind] == nil {
			r.selecting[ref.Kind] = map[types.NamespacedName][]selection{}
		}
		r.selecting[ref.Kind][key] = append(r.selecting[ref.Kind][key], s)
	} else {
		if r.users[to] == nil {
			r.users[to] = map[types.NamespacedName]bool{}
		}
		r.users[to][key] = true
	}
	r.of[key] = append(r.of[key], to)
	if ref.NamespaceSelector == nil {
		return r.begin(ref.Kind)
	}
	return errors.Join(r.begin(namespaceKind), r.begin(ref.Kind))
}

// begin watches the kind, unless that has begun.
func (r *References) begin(kind schema.GroupVersionKind) error {
	if r.watched[kind] {
		return nil
	}
	if err := r.Watch(kind); err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.Kind, err)
	}
	r.watched[kind] = true
	return nil
}

// WatchedElsewhere notes that the kind is watched without these references.
func (r *References) WatchedElsewhere(kind schema.GroupVersionKind) { r.watched[kind] = true }

func selectionOf(ref lifecycle.Reference) (s selection, err error) {
	s.namespace = ref.Namespace
	if s.objects, err = metav1.LabelSelectorAsSelector(ref.Selector); err != nil {
		return s, fmt.Errorf("the Selector of %s is invalid: %w", ref.Kind.Kind, err)
	}
	if ref.NamespaceSelector == nil {
		return s, nil
	}
	if s.namespaces, err = metav1.LabelSelectorAsSelector(ref.NamespaceSelector); err != nil {
		return s, fmt.Errorf("the NamespaceSelector of %s is invalid: %w", ref.Kind.Kind, err)
	}
	s.namespace = ""
	return s, nil
}

// usersOf are the custom resources that refer to the object.
func (r *References) usersOf(kind schema.GroupVersionKind, obj client.Object) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Collect(maps.Keys(r.users[referenced{kind, obj.GetNamespace(), obj.GetName()}]))
	for key, selections := range r.selecting[kind] {
		if slices.ContainsFunc(selections, func(s selection) bool { return r.selects(s, obj) }) {
			all = append(all, key)
		}
	}
	return all
}

// selects counts an object of a namespace whose labels are not known yet.
func (r *References) selects(s selection, obj client.Object) bool {
	if s.namespace != "" && s.namespace != obj.GetNamespace() || !s.objects.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	of, known := r.namespaces[obj.GetNamespace()]
	return s.namespaces == nil || !known || s.namespaces.Matches(of)
}

// namespaceChanged returns the custom resources for which the namespace is selected now, or was
// before, and not both. Nil labels are those of a namespace that does not exist.
func (r *References) namespaceChanged(name string, now labels.Set) (all []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.namespaces[name]
	if delete(r.namespaces, name); now != nil {
		r.namespaces[name] = now
	}
	for _, users := range r.selecting {
		for key, selections := range users {
			if slices.ContainsFunc(selections, func(s selection) bool { return s.begins(before, now) }) {
				all = append(all, key)
			}
		}
	}
	return all
}

func (s selection) begins(before, now labels.Set) bool {
	in := func(of labels.Set) bool { return of != nil && s.namespaces.Matches(of) }
	return s.namespaces != nil && in(before) != in(now)
}
