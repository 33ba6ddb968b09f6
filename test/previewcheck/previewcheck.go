// Package previewcheck compares previews with reality. It compares the objects that an
// operator applied before and after a change, and describes the difference in the form of
// a preview. It compares whole objects, so it also finds changes that the preview did not
// predict.
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

// Observer reads the objects that are applied for one custom resource.
type Observer struct {
	Client    client.Client
	Namespace string
	// Instance is the name of the custom resource, and App is the name of its application.
	Instance, App string
	// Kinds are the kinds of objects that may be applied.
	Kinds []schema.GroupVersionKind
}

// Snapshot contains the applied objects by kind and name.
type Snapshot map[string]*unstructured.Unstructured

// Snapshot returns the applied objects that are not being deleted.
func (o Observer) Snapshot(ctx context.Context) (Snapshot, error) {
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

// stripped returns the object without the fields that the API server and Kubernetes' own
// controllers set in every object.
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

// Changes returns the changes from one snapshot to the other, sorted by kind and name.
func Changes(scheme *runtime.Scheme, before, after Snapshot) ([]preview.Resource, error) {
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

// Sorted returns the resources sorted by kind and name, and their fields sorted by path.
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

// difference returns the fields in which two states of an object differ, with their
// values. The values of a Secret are omitted.
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
			f.From, f.To = valueAt(was.Object, p), valueAt(is.Object, p)
		}
		fields = append(fields, f)
	})
	return fields, nil
}

// valueAt returns the value at the path as JSON; empty if there is none.
func valueAt(content map[string]any, p fieldpath.Path) string {
	found := value.NewValueInterface(content)
	for _, element := range p {
		if found = child(found, element); found == nil || found.IsNull() {
			return ""
		}
	}
	raw, err := json.Marshal(found.Unstructured())
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func child(in value.Value, to fieldpath.PathElement) value.Value {
	switch {
	case to.FieldName != nil && in.IsMap():
		found, _ := in.AsMap().Get(*to.FieldName)
		return found
	case !in.IsList():
		return nil
	}
	for i := range in.AsList().Length() {
		item := in.AsList().At(i)
		if to.Index != nil && *to.Index == i || to.Value != nil && value.Equals(item, *to.Value) || to.Key != nil && hasKey(item, *to.Key) {
			return item
		}
	}
	return nil
}

func hasKey(item value.Value, by value.FieldList) bool {
	return item.IsMap() && !slices.ContainsFunc(by, func(f value.Field) bool {
		has, ok := item.AsMap().Get(f.Name)
		return !ok || !value.Equals(has, f.Value)
	})
}
