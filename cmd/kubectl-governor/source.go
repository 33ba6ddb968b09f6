package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// source is a set of objects that can be listed and watched.
type source struct {
	kind      schema.GroupVersionResource
	namespace string
	// labels and fields select; empty means all.
	labels, fields string
}

var podKind = corev1.SchemeGroupVersion.WithResource("pods")

// named is the source of one object.
func named(kind schema.GroupVersionResource, namespace, name string) source {
	return source{kind: kind, namespace: namespace, fields: fields.OneTermEqualSelector("metadata.name", name).String()}
}

func (s source) narrow(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = s.labels, s.fields }

// catch has the found objects of each source, in the order of the sources.
type catch [][]*unstructured.Unstructured

// fetch lists all sources concurrently. An error of one source does not affect the others:
// it is returned at the index of its source.
func fetch(ctx context.Context, client dynamic.Interface, sources []source) (catch, []error) {
	found, faults := make(catch, len(sources)), make([]error, len(sources))
	var wait sync.WaitGroup
	for i, from := range sources {
		wait.Go(func() {
			var o metav1.ListOptions
			from.narrow(&o)
			list, err := client.Resource(from.kind).Namespace(from.namespace).List(ctx, o)
			if err != nil {
				faults[i] = err
				return
			}
			for j := range list.Items {
				found[i] = append(found[i], &list.Items[j])
			}
		})
	}
	wait.Wait()
	return found, faults
}

// as converts the objects to their type, and drops those that cannot be converted.
func as[T any](objects []*unstructured.Unstructured) []T {
	var all []T
	for _, u := range objects {
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &one); err == nil {
			all = append(all, one)
		}
	}
	return all
}
