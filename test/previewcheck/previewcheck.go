// Package previewcheck holds previews to what comes of them: it compares the objects that
// an operator provides before and after a change, and says what became of them in the
// words of a preview. It looks at whole objects, and so at more than a preview knows:
// what nobody foretold shows.
package previewcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	applyconfigurations "k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// Observer looks at what is provided for one object.
type Observer struct {
	Client    client.Client
	Namespace string
	// Instance is the name of the object, and App that of its application.
	Instance, App string
	// Kinds may be provided.
	Kinds []schema.GroupVersionKind
}

// Snapshot is what is provided, by kind and name.
type Snapshot map[string]*unstructured.Unstructured

// Look returns what is there and is not being deleted.
func (o Observer) Look(ctx context.Context) (Snapshot, error) {
	seen := Snapshot{}
	for _, gvk := range o.Kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := o.Client.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabels{
			lifecycle.LabelInstance: o.Instance, lifecycle.LabelApp: o.App,
		})
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if item.GetLabels()[lifecycle.LabelApplied] != "" && item.GetDeletionTimestamp() == nil {
				seen[gvk.Kind+" "+item.GetName()] = stripped(item)
			}
		}
	}
	return seen, nil
}

// stripped is the object without what the API server and Kubernetes' own controllers
// write into every object.
func stripped(u unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	if len(u.GetAnnotations()) == 0 {
		u.SetAnnotations(nil)
	}
	return &u
}

// Became says what became of one snapshot until the other, sorted by kind and name.
func Became(scheme *runtime.Scheme, before, after Snapshot) ([]preview.Resource, error) {
	types := applyconfigurations.NewTypeConverter(scheme)
	var all []preview.Resource
	for id, was := range before {
		is, still := after[id]
		if !still {
			all = append(all, preview.Resource{Verb: "Pruned", Kind: was.GetKind(), Name: was.GetName()})
			continue
		}
		fields, err := difference(types, was, is)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		if len(fields) > 0 {
			all = append(all, preview.Resource{Verb: "Configured", Kind: is.GetKind(), Name: is.GetName(), Fields: fields})
		}
	}
	for id, is := range after {
		if before[id] == nil {
			all = append(all, preview.Resource{Verb: "Created", Kind: is.GetKind(), Name: is.GetName()})
		}
	}
	return Sorted(all), nil
}

// Sorted are the resources by kind and name, and their fields by path.
func Sorted(all []preview.Resource) []preview.Resource {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b preview.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for i := range all {
		all[i].Fields = slices.Clone(all[i].Fields)
		slices.SortFunc(all[i].Fields, func(a, b preview.Field) int { return cmp.Compare(a.Path, b.Path) })
	}
	return all
}

// difference are the fields in which two states of an object differ, with the values;
// of a Secret without.
func difference(types managedfields.TypeConverter, was, is *unstructured.Unstructured) ([]preview.Field, error) {
	before, err := types.ObjectToTyped(was)
	if err != nil {
		return nil, err
	}
	after, err := types.ObjectToTyped(is)
	if err != nil {
		return nil, err
	}
	changed, err := before.Compare(after)
	if err != nil {
		return nil, err
	}
	var fields []preview.Field
	changed.Added.Union(changed.Removed).Union(changed.Modified).Leaves().Iterate(func(p fieldpath.Path) {
		f := preview.Field{Path: strings.TrimPrefix(p.String(), ".")}
		if is.GetKind() != "Secret" {
			f.From, f.To = at(was.Object, p), at(is.Object, p)
		}
		fields = append(fields, f)
	})
	return fields, nil
}

// at is the value at the path as JSON; empty if there is none.
func at(content map[string]any, p fieldpath.Path) string {
	found := value.NewValueInterface(content)
	for _, element := range p {
		if found = step(found, element); found == nil || found.IsNull() {
			return ""
		}
	}
	raw, err := json.Marshal(found.Unstructured())
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func step(in value.Value, to fieldpath.PathElement) value.Value {
	switch {
	case to.FieldName != nil && in.IsMap():
		found, _ := in.AsMap().Get(*to.FieldName)
		return found
	case !in.IsList():
		return nil
	}
	for i := range in.AsList().Length() {
		item := in.AsList().At(i)
		if to.Index != nil && *to.Index == i || to.Value != nil && value.Equals(item, *to.Value) || to.Key != nil && keyed(item, *to.Key) {
			return item
		}
	}
	return nil
}

func keyed(item value.Value, by value.FieldList) bool {
	return item.IsMap() && !slices.ContainsFunc(by, func(f value.Field) bool {
		has, ok := item.AsMap().Get(f.Name)
		return !ok || !value.Equals(has, f.Value)
	})
}
