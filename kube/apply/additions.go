package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/governor-dev/governor/lifecycle"
)

// Additions returns the fields of the existing object's spec that other managers added and the
// owner does not declare, and the object without them. A server-side apply of the declaration
// leaves such fields as they are. Defaults have no manager, so they are no additions. The
// existing object must come from the API server, because caches leave out managed fields.
func (c *Comparer) Additions(owner client.Object, wanted lifecycle.Object, existing client.Object) ([]string, client.Object, error) {
	d, err := declare(c.scheme, owner, wanted.DeepCopyObject().(client.Object))
	if err != nil {
		return nil, nil, err
	}
	should, is, err := c.typed(d, existing)
	if err != nil {
		return nil, nil, err
	}
	fields, err := should.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	own, others, err := managed(existing)
	if err != nil {
		return nil, nil, err
	}
	added := undeclared(others, own.Union(fields))
	content, ok := is.RemoveItems(added).AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("%s %q has no fields", d.kind, d.name())
	}
	rest := d.newObject()
	return paths(added), rest, runtime.DefaultUnstructuredConverter.FromUnstructured(content, rest)
}

// undeclared returns the fields under spec that others own, except the kept ones and those that
// contain a kept one.
func undeclared(others, kept *fieldpath.Set) *fieldpath.Set {
	added := &fieldpath.Set{}
	others.Iterate(func(p fieldpath.Path) {
		if name := p[0].FieldName; name != nil && *name == "spec" && len(p) > 1 && !kept.Has(p) && below(kept, p).Empty() {
			added.Insert(p.Copy())
		}
	})
	return added
}

// below returns the part of the set under the path.
func below(set *fieldpath.Set, p fieldpath.Path) *fieldpath.Set {
	for _, element := range p {
		set = set.WithPrefix(element)
	}
	return set
}

// managed returns the fields that Governor owns by any operation, and those that others own.
func managed(obj client.Object) (own, others *fieldpath.Set, err error) {
	own, others = &fieldpath.Set{}, &fieldpath.Set{}
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		some, err := fieldsOf(entry)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the managed fields of %q: %w", obj.GetName(), err)
		}
		if entry.Manager == Manager || strings.HasPrefix(entry.Manager, Manager+"-") {
			own = own.Union(some)
		} else {
			others = others.Union(some)
		}
	}
	return own, others, nil
}
