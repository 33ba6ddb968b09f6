package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// Bystander is the label of objects that belong to others and must not be touched.
const Bystander = "chaos.governor.dev/bystander"

// Instance is one custom resource with all that belongs to it.
type Instance struct {
	// Kind is that of the custom resource.
	Kind schema.GroupVersionKind
	// Key is its namespace and name.
	Key client.ObjectKey
	// OperatorNamespace is where the operator and its Lease are; empty finds none.
	OperatorNamespace string
	// Manager is the field manager of all writes; empty leaves it to the API server.
	Manager string
	// Clock is the time for patches that have it; without it the API server refuses them.
	Clock func() time.Time
	// Spare reports whether an object of the instance is not to be touched; nil spares none.
	Spare func(*unstructured.Unstructured) bool
}

// Find returns the objects of the kind that belong to the instance, in the order of their
// names. The instance itself belongs to it, too.
func (i Instance) Find(ctx context.Context, c client.Reader, kind chaos.Object) ([]unstructured.Unstructured, error) {
	if kind.Custom {
		one, err := i.self(ctx, c, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
		if err != nil {
			return nil, err
		}
		return []unstructured.Unstructured{*one}, nil
	}
	all, err := i.list(ctx, c, kind)
	if err != nil {
		return nil, err
	}
	uid, err := i.uid(ctx, c)
	if err != nil {
		return nil, err
	}
	mine := slices.DeleteFunc(all, func(o unstructured.Unstructured) bool {
		return !i.owns(kind, &o, uid) || i.Spare != nil && i.Spare(&o)
	})
	slices.SortFunc(mine, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return mine, nil
}

func (i Instance) list(ctx context.Context, c client.Reader, kind chaos.Object) ([]unstructured.Unstructured, error) {
	namespace := i.Key.Namespace
	if kind.Scope == chaos.ScopeOperator || kind.Scope == chaos.ScopeCluster {
		if namespace = i.OperatorNamespace; namespace == "" {
			return nil, nil
		}
	}
	if kind.Scope == chaos.ScopeCluster {
		namespace = ""
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind+"List"))
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("cannot list %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// owns reports whether the object belongs to the instance: by its label, or by its owner.
func (i Instance) owns(kind chaos.Object, o *unstructured.Unstructured, uid types.UID) bool {
	_, foreign := o.GetLabels()[Bystander]
	_, isolates := o.GetLabels()[Isolated]
	if foreign || isolates && o.GetKind() != chaos.Pod.Kind {
		return false
	}
	if kind.Scope == chaos.ScopeOperator || kind.Scope == chaos.ScopeCluster {
		return len(kind.Names) == 0 && kind.Scope == chaos.ScopeOperator || slices.Contains(kind.Names, o.GetName())
	}
	if o.GetLabels()[lifecycle.LabelInstance] == i.Key.Name {
		return true
	}
	for _, owner := range o.GetOwnerReferences() {
		if uid != "" && owner.UID == uid || owner.Kind == chaos.StatefulSet.Kind && i.isMember(owner.Name) {
			return true
		}
	}
	return false
}

// isMember reports whether the name is that of a member's StatefulSet: the instance's name and a number.
// Another instance may have such a name, and members e-1-0.
func (i Instance) isMember(name string) bool {
	number, ok := strings.CutPrefix(name, i.Key.Name+"-")
	_, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil
}

// uid is empty when the instance is gone.
func (i Instance) uid(ctx context.Context, c client.Reader) (types.UID, error) {
	one, err := i.self(ctx, c, i.Kind)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	return one.GetUID(), nil
}

func (i Instance) self(ctx context.Context, c client.Reader, as schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(as)
	return one, c.Get(ctx, i.Key, one)
}
