package enforce

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// ApprovedIndex finds approvals by the object that they name.
const ApprovedIndex = "governor.dev/approved"

func indexApproved(obj client.Object) []string {
	a, ok := obj.(*v1alpha1.Approval)
	if !ok {
		return nil
	}
	return []string{ApprovedObject(schema.GroupKind{Group: a.Spec.TargetRef.Group, Kind: a.Spec.TargetRef.Kind}, a.Spec.TargetRef.Name)}
}

// ApprovedObject is the value of the index ApprovedIndex for an object.
func ApprovedObject(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// approvalChanged reconciles the named object, unless only the status changed.
func (r *Store) approvalChanged(old, now client.Object) {
	if old != nil && now != nil && old.GetGeneration() == now.GetGeneration() {
		return
	}
	for _, obj := range []client.Object{old, now} {
		if a, ok := obj.(*v1alpha1.Approval); ok {
			f := r.running()[schema.GroupKind{Group: a.Spec.TargetRef.Group, Kind: a.Spec.TargetRef.Kind}]
			if f != nil {
				f.Wake(types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name})
			}
			return
		}
	}
}

// readAgain reconciles the objects of all approvals: an earlier reconcile could not read them.
func (r *Store) readAgain(ctx context.Context) {
	list := &v1alpha1.ApprovalList{}
	if err := r.Approvals.List(ctx, list); err != nil {
		return // the cache ends, and starts again
	}
	for i := range list.Items {
		r.approvalChanged(nil, &list.Items[i])
	}
}
