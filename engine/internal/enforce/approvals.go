package enforce

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// Approvals are those that name the object.
func (k *Kind) Approvals(ctx context.Context, key types.NamespacedName) []*v1alpha1.Approval {
	if k.Store.Approvals == nil {
		return nil
	}
	list := &v1alpha1.ApprovalList{}
	err := k.Store.Approvals.List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingFields{ApprovedIndex: ApprovedObject(k.GVK.GroupKind(), key.Name)})
	if err != nil {
		logf.FromContext(ctx).Error(err, "approvals cannot be read, so none counts")
		return nil
	}
	var all []*v1alpha1.Approval
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			all = append(all, &list.Items[i])
		}
	}
	return all
}

// Remaining is the plan for the object as approvals are compared with it, under the policies.
func (k *Kind) Remaining(obj lifecycle.Object, about policy.Set, plan preview.Plan) policy.RemainingPlan {
	a := policy.RemainingPlan{
		Object: k.Subject(obj), UID: string(obj.GetUID()), Generation: obj.GetGeneration(),
		Author: lifecycle.AuthorOf(obj), OtherUser: about.WantsOtherUser(),
	}
	for _, s := range plan.Actions() {
		a.Steps = append(a.Steps, s.Step)
	}
	return a
}

// UpdateApprovals writes into the approvals of the object whether they are valid now, and returns
// when the first valid one expires; zero if none is valid. ahead is asked only if there are any.
func (k *Kind) UpdateApprovals(ctx context.Context, key types.NamespacedName, ahead func() policy.RemainingPlan) (expires time.Time) {
	all := k.Approvals(ctx, key)
	if len(all) == 0 {
		return expires
	}
	remaining := ahead()
	for _, a := range all {
		state := policy.ApprovalStateOf(a, remaining, k.Now())
		if ends := a.Spec.ExpirationTime.Time; state.Valid && (expires.IsZero() || ends.Before(expires)) {
			expires = ends
		}
		k.certify(ctx, a, state)
	}
	return expires
}

// RevokeApprovals marks the approvals of a deleted object as invalid.
func (k *Kind) RevokeApprovals(ctx context.Context, key types.NamespacedName) {
	for _, a := range k.Approvals(ctx, key) {
		k.certify(ctx, a, policy.ApprovalState{Reason: policy.ReasonObjectGone, Message: "The " + a.Spec.TargetRef.Kind + " " + key.Name + " is gone."})
	}
}

// certify writes the state of the approval if it has changed. After a conflict, the write of
// the other party reconciles the object again.
func (k *Kind) certify(ctx context.Context, a *v1alpha1.Approval, w policy.ApprovalState) {
	fact := lifecycle.Condition{Type: policy.ConditionValid, Status: lifecycle.StatusOf(w.Valid), Reason: w.Reason, Message: w.Message}
	a = a.DeepCopy()
	before := a.Status.Conditions
	a.Status.Conditions = lifecycle.Merge(before, []lifecycle.Condition{fact}, a.Generation, metav1.NewTime(k.Now()))
	if equality.Semantic.DeepEqual(before, a.Status.Conditions) {
		return
	}
	err := k.Client.Status().Update(ctx, a)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		logf.FromContext(ctx).Error(err, "cannot write the status of an approval", "approval", a.Name)
	}
}
