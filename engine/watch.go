package engine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/lifecycle"
)

// Watch is a kind that the driver can read from the cache, and that Resources does not return.
type Watch struct {
	// Object is an empty object of the kind: a Go type of the scheme, or an unstructured object
	// that says its kind.
	Object client.Object

	// Selector selects the objects that the cache keeps, by their labels. Nil selects those with
	// the application's lifecycle.LabelApp, and labels.Everything() selects all. A change of an
	// object reconciles the custom resource that its label lifecycle.LabelInstance names, if it
	// has the label of the application. With a Selector it also reconciles those that refer to
	// it, see References of lifecycle.Abilities.
	Selector labels.Selector

	// MetadataOnly keeps nothing but the metadata. The driver reads it as a
	// metav1.PartialObjectMetadata, and the rest from the API server.
	MetadataOnly bool

	// Transform drops from an object, before it is cached, what no decision is made from. The
	// managed fields are dropped in any case. Nil drops nothing else, except from a Pod: its
	// node, its volumes of claims, and the names and images of its containers stay of its spec.
	Transform func(client.Object)
}

// informer is the object to ask the cache for.
func (w Watch) informer(scheme *runtime.Scheme) (client.Object, error) {
	if !w.MetadataOnly {
		return w.Object, nil
	}
	gvk, err := apiutil.GVKForObject(w.Object, scheme)
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m, err
}

// selector selects the objects, by default those of the application.
func (w Watch) selector(app string) labels.Selector {
	if w.Selector != nil {
		return w.Selector
	}
	return labels.SelectorFromSet(labels.Set{lifecycle.LabelApp: app})
}

// transform returns what drops parts of an object.
func (w Watch) transform() func(any) (any, error) {
	if w.Transform == nil {
		return caching.Trim
	}
	return func(obj any) (any, error) {
		if o, ok := obj.(client.Object); ok {
			o.SetManagedFields(nil)
			w.Transform(o)
		}
		return obj, nil
	}
}

// checkKinds returns an error for a kind that is not known, or is there twice: the cache has one
// selection of objects for each kind.
func (a App[T, W]) checkKinds(scheme *runtime.Scheme) error {
	field := map[schema.GroupKind]string{}
	check := func(name string, obj client.Object) error {
		if obj == nil {
			return fmt.Errorf("%s has an entry without an object", name)
		}
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if other, known := field[gvk.GroupKind()]; known {
			return fmt.Errorf("%s has the kind %s, which is in %s already", name, gvk.GroupKind(), other)
		}
		field[gvk.GroupKind()] = name
		return nil
	}
	if err := check("the application itself", a.newObject()); err != nil {
		return err
	}
	for _, obj := range a.Owns {
		if err := check("Owns", obj); err != nil {
			return err
		}
	}
	for _, w := range a.Watches {
		if err := check("Watches", w.Object); err != nil {
			return err
		}
	}
	return nil
}

// watchedObjects are those that the cache is asked for, as the driver reads them.
func (a App[T, W]) watchedObjects(scheme *runtime.Scheme) (all []client.Object, err error) {
	for _, w := range a.Watches {
		obj, err := w.informer(scheme)
		if err != nil {
			return nil, err
		}
		all = append(all, obj)
	}
	return all, nil
}

// watchesPods reports whether the driver reads pods from the cache.
func (a App[T, W]) watchesPods() bool {
	return slices.ContainsFunc(a.Watches, func(w Watch) bool {
		_, is := w.Object.(*corev1.Pod)
		return is && !w.MetadataOnly
	})
}
