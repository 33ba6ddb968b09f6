package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/governor-dev/governor/lifecycle"
)

// Comparer compares objects with declarations by their values alone. So it does not need
// managed fields, which caches leave out. It knows the built-in types.
type Comparer struct {
	scheme *runtime.Scheme
	types  managedfields.TypeConverter
}

// NewComparer returns a comparer for the types of the scheme.
func NewComparer(scheme *runtime.Scheme) *Comparer {
	return &Comparer{scheme: scheme, types: applyconfigurations.NewTypeConverter(scheme)}
}

// Differs returns the fields that the owner declares and the existing object lacks, or has
// with another value. Fields that only other managers set are no difference.
func (c *Comparer) Differs(owner client.Object, wanted lifecycle.Object, existing client.Object) ([]string, error) {
	d, err := declare(c.scheme, owner, wanted.DeepCopyObject().(client.Object))
	if err != nil {
		return nil, err
	}
	should, is, err := c.typed(d, existing)
	if err != nil {
		return nil, err
	}
	fields, err := should.ToFieldSet()
	if err != nil {
		return nil, err
	}
	found, err := is.ExtractItems(fields.Leaves(), typed.WithAppendKeyFields()).Compare(should)
	if err != nil {
		return nil, err
	}
	return paths(found.Added.Union(found.Modified).Difference(identifying)), nil
}

// typed returns the declaration and the existing object with their schema.
func (c *Comparer) typed(d declared, existing client.Object) (should, is *typed.TypedValue, err error) {
	should, err = c.types.ObjectToTyped(d.content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %q does not fit its schema: %w", d.kind, d.name(), err)
	}
	live := existing.DeepCopyObject().(client.Object)
	live.GetObjectKind().SetGroupVersionKind(d.content.GroupVersionKind())
	is, err = c.types.ObjectToTyped(live)
	return should, is, err
}
