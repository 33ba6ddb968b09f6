package wake

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Handler reconciles the users of each changed object of the kind. The first list counts as a change: an object
// may have changed after the reconcile that read it, and before the watch began.
func (r *References) Handler(kind schema.GroupVersionKind) handler.EventHandler {
	wake := func(q Queue, obj client.Object, exists bool) {
		add(q, r.usersOf(kind, obj))
		if kind.GroupKind() == namespaceKind.GroupKind() {
			add(q, r.namespaceChanged(obj.GetName(), labelsOf(obj, exists)))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q Queue) { wake(q, e.Object, true) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q Queue) { wake(q, e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				add(q, r.usersOf(kind, e.ObjectOld)) // it may have selected the labels that the object had
				wake(q, e.ObjectNew, true)
			}
		},
	}
}

func add(q Queue, keys []types.NamespacedName) {
	for _, key := range keys {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// labelsOf are not nil if the object exists.
func labelsOf(obj client.Object, exists bool) labels.Set {
	if !exists {
		return nil
	}
	return labels.Merge(obj.GetLabels(), nil)
}

// OnlyIdentity drops all metadata that the references do not need: a cluster may have many Secrets.
func OnlyIdentity(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels,
		}
	}
	return obj, nil
}
