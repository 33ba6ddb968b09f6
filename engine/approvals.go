package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// approvals are those that name the object.
func (e *engine[T, W]) approvals(ctx context.Context, key types.NamespacedName) []*v1alpha1.Approval {
	if e.operator.policies.Approvals == nil {
		return nil
	}
	list := &v1alpha1.ApprovalList{}
	err := e.operator.policies.Approvals.List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingFields{enforce.ApprovedIndex: enforce.ApprovedObject(e.gvk.GroupKind(), key.Name)})
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

// ahead is what is left to do for the object, as a preview has it.
func (e *engine[T, W]) ahead(obj T, seen W) policy.RemainingPlan {
	subject := preview.Simulator[T, W]{Planner: e.app.Planner, Gates: e.app.Gates, Impact: e.app.Abilities.Impact}
	plan, _, _ := subject.Unroll(obj, seen, e.now())
	a := policy.RemainingPlan{Object: e.subject(obj), UID: string(obj.GetUID()), Generation: obj.GetGeneration()}
	a.Author, a.OtherUser = lifecycle.AuthorOf(obj), e.selecting(obj).WantsOtherUser()
	for _, s := range plan.Actions() {
		a.Steps = append(a.Steps, s.Step)
	}
	return a
}

// updateApprovals writes into the approvals of the object whether they are valid now. After a
// step it leaves that to the next reconcile, which observes the new world.
func (e *engine[T, W]) updateApprovals(ctx context.Context, r *reconciliation[T, W]) {
	if !r.observed || r.panicked || r.taken != nil {
		return
	}
	all := e.approvals(ctx, r.key)
	if len(all) == 0 {
		return
	}
	ahead := e.ahead(r.obj, r.seen)
	if r.heldIn != nil {
		ahead = e.ahead(r.heldIn.obj, r.heldIn.seen)
	}
	for _, a := range all {
		worth := policy.ApprovalStateOf(a, ahead, e.now())
		if ends := a.Spec.ExpirationTime.Time; worth.Valid && (r.expires.IsZero() || ends.Before(r.expires)) {
			r.expires = ends
		}
		e.certify(ctx, a, worth)
	}
}

// revoke marks the approvals of a deleted object as invalid.
func (e *engine[T, W]) revoke(ctx context.Context, key types.NamespacedName) {
	for _, a := range e.approvals(ctx, key) {
		e.certify(ctx, a, policy.ApprovalState{Reason: policy.ObjectGone, Message: "The " + a.Spec.TargetRef.Kind + " " + key.Name + " is gone."})
	}
}

// certify writes the state of the approval if it has changed. After a conflict, the write of
// the other party reconciles the object again.
func (e *engine[T, W]) certify(ctx context.Context, a *v1alpha1.Approval, w policy.ApprovalState) {
	fact := lifecycle.Condition{Type: policy.Valid, Status: lifecycle.StatusOf(w.Valid), Reason: w.Reason, Message: w.Message}
	a = a.DeepCopy()
	before := a.Status.Conditions
	a.Status.Conditions = lifecycle.Merge(before, []lifecycle.Condition{fact}, a.Generation, metav1.NewTime(e.now()))
	if equality.Semantic.DeepEqual(before, a.Status.Conditions) {
		return
	}
	err := e.client.Status().Update(ctx, a)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		logf.FromContext(ctx).Error(err, "cannot write the status of an approval", "approval", a.Name)
	}
}
