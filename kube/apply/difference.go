package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// identifying are the fields that every declaration has and no manager owns.
var identifying = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
)

// difference returns the fields that an apply of d would change. These are owned fields
// that are missing in d or in the object, and fields with another value. It computes
// locally what the API server would do. A manager that changes an owned field takes its
// ownership, so drift shows as a field that Manager no longer owns.
func (a *Applier) difference(d declared, existing client.Object) ([]string, error) {
	set, err := a.changed(d, existing)
	if err != nil {
		return nil, err
	}
	return paths(set), nil
}

// changed returns the same fields as a set. Its error is a [CompareError].
func (a *Applier) changed(d declared, existing client.Object) (*fieldpath.Set, error) {
	set, err := a.differing(d, existing)
	if err != nil {
		return nil, &CompareError{Kind: d.kind, Name: d.name(), Err: err}
	}
	return set, nil
}

func (a *Applier) differing(d declared, existing client.Object) (*fieldpath.Set, error) {
	wanted, err := a.types.ObjectToTyped(d.content)
	if err != nil {
		return nil, fmt.Errorf("the declaration does not fit its schema: %w", err)
	}
	live := existing.DeepCopyObject().(client.Object)
	live.GetObjectKind().SetGroupVersionKind(d.content.GroupVersionKind())
	is, err := a.types.ObjectToTyped(live)
	if err != nil {
		return nil, err
	}
	owned, err := ownedFields(existing)
	if err != nil {
		return nil, err
	}
	ours := is.ExtractItems(owned.Leaves(), typed.WithAppendKeyFields())
	c, err := ours.Compare(wanted)
	if err != nil {
		return nil, err
	}
	return c.Added.Union(c.Modified).Union(c.Removed).Difference(identifying), nil
}

func ownedFields(obj client.Object) (*fieldpath.Set, error) {
	owned := &fieldpath.Set{}
	for _, entry := range obj.GetManagedFields() {
		if !isApplyEntry(entry) {
			continue
		}
		if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("cannot read the managed fields of %q: %w", obj.GetName(), err)
		}
	}
	return owned, nil
}

func paths(set *fieldpath.Set) []string {
	var all []string
	set.Leaves().Iterate(func(p fieldpath.Path) {
		all = append(all, pathString(p))
	})
	slices.Sort(all)
	return all
}

func pathString(p fieldpath.Path) string { return strings.TrimPrefix(p.String(), ".") }

// summary names the first few fields.
func summary(fields []string) string {
	const enough = 3
	if len(fields) <= enough {
		return strings.Join(fields, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(fields[:enough], ", "), len(fields)-enough)
}

func each(list client.ObjectList, visit func(client.Object)) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			visit(obj)
		}
		return nil
	})
}

func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.String(), b.String()) })
}
