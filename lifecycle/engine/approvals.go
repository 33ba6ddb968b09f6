package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// approvedIndex finds approvals by the object that they name.
const approvedIndex = "governor.dev/approved"

func indexApproved(obj client.Object) []string {
	a, ok := obj.(*v1alpha1.Approval)
	if !ok {
		return nil
	}
	return []string{approved(schema.GroupKind{Group: a.Spec.Object.Group, Kind: a.Spec.Object.Kind}, a.Spec.Object.Name)}
}

func approved(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// approvalChanged wakes the object that is named, unless only the status changed.
func (r *rules) approvalChanged(old, now client.Object) {
	if old != nil && now != nil && old.GetGeneration() == now.GetGeneration() {
		return
	}
	for _, obj := range []client.Object{old, now} {
		if a, ok := obj.(*v1alpha1.Approval); ok {
			f := r.running()[schema.GroupKind{Group: a.Spec.Object.Group, Kind: a.Spec.Object.Kind}]
			if f != nil {
				f.wake(types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Object.Name})
			}
			return
		}
	}
}
