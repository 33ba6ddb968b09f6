package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// newObject returns a new object of the application's kind.
func (a App[T, W]) newObject() T {
	if a.New != nil {
		return a.New()
	}
	var t T
	return reflect.New(reflect.TypeOf(t).Elem()).Interface().(T)
}

// cachedObject returns a new object as the cache keeps it: one without a Go type is unstructured
// there.
func (a App[T, W]) cachedObject() client.Object {
	obj := a.newObject()
	if _, ok := any(obj).(runtime.Unstructured); !ok {
		return obj
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return u
}

// typed returns an object of the cache as a T, and false for any other object.
func (a App[T, W]) typed(cached runtime.Object) (T, bool) {
	if obj, ok := cached.(T); ok {
		return obj, true
	}
	obj := a.newObject()
	into, ok := any(obj).(runtime.Unstructured)
	from, same := cached.(runtime.Unstructured)
	if ok && same {
		into.SetUnstructuredContent(from.UnstructuredContent())
	}
	return obj, ok && same
}

// decode reads an object from a request of the API server.
func (a App[T, W]) decode(decoder admission.Decoder, raw runtime.RawExtension) (T, error) {
	obj := a.newObject()
	_, ok := any(obj).(runtime.Unstructured)
	if into, parses := any(obj).(json.Unmarshaler); ok && parses { // the decoder knows no whole numbers
		return obj, into.UnmarshalJSON(raw.Raw)
	}
	return obj, decoder.DecodeRaw(raw, obj)
}

// read returns the object from the cache.
func (e *engine[T, W]) read(ctx context.Context, key types.NamespacedName) (T, error) {
	cached := e.app.cachedObject()
	if err := e.client.Get(ctx, key, cached); err != nil {
		return *new(T), err
	}
	obj, ok := e.app.typed(cached)
	if !ok {
		return obj, fmt.Errorf("the cache has a %T, which is no %s", cached, e.gvk.Kind)
	}
	return obj, nil
}

// blankList returns an empty list of the application's kind, as the cache fills it.
func (e *engine[T, W]) blankList() (client.ObjectList, error) {
	kind := e.gvk.GroupVersion().WithKind(e.gvk.Kind + "List")
	if _, ok := e.app.cachedObject().(*unstructured.Unstructured); ok {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	list, err := e.client.Scheme().New(kind)
	if err != nil {
		return nil, fmt.Errorf("the scheme has no list of %s: %w", e.gvk.Kind, err)
	}
	return list.(client.ObjectList), nil
}
