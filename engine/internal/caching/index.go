// Package caching decides what the operator's caches keep of each object and how drivers
// read it: without managed fields, with trimmed pods, and indexed by instance.
package caching

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// InstanceIndex is the cache index by the instance that an object's label names.
const InstanceIndex = "governor.dev/instance"

// IndexInstance returns the values of an object in the index InstanceIndex.
func IndexInstance(obj client.Object) []string {
	if name, ok := obj.GetLabels()[lifecycle.LabelInstance]; ok {
		return []string{name}
	}
	return nil
}

// indexed looks up what bears an instance's label, of the kinds that are watched: a list
// by label alone reads every object of the namespace, in each turn of each object.
type indexed struct {
	client.Client
	kinds map[schema.GroupVersionKind]bool
}

// IndexedBy returns a client that uses the index for lists of the watched kinds.
func IndexedBy(c client.Client, watched []client.Object) indexed {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, obj := range watched {
		if gvk, err := c.GroupVersionKindFor(obj); err == nil {
			gvk.Kind += "List"
			kinds[gvk] = true
		}
	}
	return indexed{c, kinds}
}

// List implements client.Client.
func (c indexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if name, ok := instanceIn(o.LabelSelector); ok && o.FieldSelector == nil && c.covers(list) {
		opts = append(opts, client.MatchingFields{InstanceIndex: name})
	}
	return c.Client.List(ctx, list, opts...)
}

func (c indexed) covers(list client.ObjectList) bool {
	gvk, err := c.GroupVersionKindFor(list)
	return err == nil && c.kinds[gvk]
}

// instanceIn is the only instance that the selector selects.
func instanceIn(s labels.Selector) (string, bool) {
	if s == nil {
		return "", false
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		values := r.ValuesUnsorted()
		exact := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
		if r.Key() == lifecycle.LabelInstance && exact && len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}
