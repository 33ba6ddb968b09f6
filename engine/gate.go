package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// judge asks the application's gates about the step, then the policies, and then the budget for a
// slot. While policies hold a change, the repairs behind it go on.
func (e *engine[T, W]) judge(ctx context.Context, r *reconciliation[T, W]) {
	if r.decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	var gated bool
	gated, r.refusals = e.refusals(ctx, r, r.decision.Step)
	if len(r.refusals) > 0 && (gated || !e.repairInstead(ctx, r)) {
		r.hold(r.decision, r.refusals)
	}
	e.keepHeldChangeOut(ctx, r)
}

// refusals are the objections to the step. Gates of the application are asked before all
// others, and gated says that they object.
func (e *engine[T, W]) refusals(ctx context.Context, r *reconciliation[T, W], step lifecycle.Step) (gated bool, all []lifecycle.Refusal) {
	during, _ := e.app.Planner.Effect(r.obj, r.seen, step)
	if all = lifecycle.Judge(e.app.Gates, r.obj, r.seen, during, step); len(all) > 0 {
		return true, all
	}
	return false, e.permitted(ctx, r, step)
}

// hold makes the decision a held one.
func (r *result) hold(d lifecycle.Decision, refusals []lifecycle.Refusal) {
	after := d.After // what cannot be watched is looked at all the same
	r.decision, r.refusals = lifecycle.Held(d.Step, refusals...), refusals
	r.decision.After = after
}

// repairInstead decides for a repair while policies hold the change of the decision, and reports
// whether there is one. They may hold the repair, too. A wait that repairs have begun is observed
// again as if nothing were held.
func (e *engine[T, W]) repairInstead(ctx context.Context, r *reconciliation[T, W]) bool {
	next := r.decision.Instead(func(s lifecycle.Step) bool { return e.neededBefore(ctx, r.obj, r.seen, s) })
	if next.Outcome == lifecycle.OutcomeWait && next.After > 0 {
		r.again = e.now().Add(next.After)
	}
	if next.Outcome != lifecycle.OutcomeProceed {
		return false
	}
	next = e.withCause(ctx, r, next)
	gated, all := e.refusals(ctx, r, next.Step)
	switch {
	case gated:
		r.hold(next, all)
	case len(all) > 0:
		return false
	default:
		r.decision, r.refusals = next, nil
	}
	return true
}

// permitted asks the policies about a step that the application would take, and if
// they let it pass, for a slot.
func (e *engine[T, W]) permitted(ctx context.Context, r *reconciliation[T, W], step lifecycle.Step) []lifecycle.Refusal {
	about := e.selecting(r.obj)
	v := about.Judge(e.question(ctx, r.obj, r.seen, step))
	if len(v.Refusals) > 0 {
		return v.Refusals
	}
	if asksBudget(r.obj, step) {
		refusals := e.operator.budget.Ask(e.claimOf(r.obj, about), func() { e.Wake(r.key) })
		if r.queued = len(refusals) > 0; r.queued {
			return refusals
		}
	}
	r.approval, r.bypass = v.Approval, e.bypassed(ctx, r.obj, v)
	return nil
}

// claimOf is what the object needs to be disrupted.
func (e *engine[T, W]) claimOf(obj T, about policy.Set) budget.Claim {
	return budget.Claim{
		Holder: e.holder(client.ObjectKeyFromObject(obj)), Namespace: obj.GetNamespace(), App: e.app.Name,
		Shares: about.BudgetSlots(e.subject(obj)),
	}
}

// updateBudget updates the budget after a reconcile. An object that is settled, Blocked, or waits
// for a user or a time is not disrupted: other objects use its slot meanwhile.
func (e *engine[T, W]) updateBudget(r *result) {
	holder, outcome := e.holder(r.key), r.decision.Outcome
	byPolicy := slices.ContainsFunc(r.refusals, func(r lifecycle.Refusal) bool { return r.Policy != "" })
	switch {
	case r.queued: // it waits for its turn
	case r.paused, byPolicy, outcome == lifecycle.OutcomeSettled, outcome == lifecycle.OutcomeBlocked:
		e.operator.budget.Release(holder)
	default:
		e.operator.budget.Withdraw(holder)
	}
	if r.taken != nil && r.taken.err == nil {
		e.operator.budget.Moves(holder)
	}
}

// question is what the policies are asked about a step of the object.
func (e *engine[T, W]) question(ctx context.Context, obj T, seen W, step lifecycle.Step) policy.Question {
	return policy.Question{
		Object: e.subject(obj), Step: step, Now: e.now(), Deletion: deleting(obj),
		Bypass: strings.TrimSpace(obj.GetAnnotations()[lifecycle.AnnotationBypass]), Author: lifecycle.AuthorOf(obj), Generation: obj.GetGeneration(),
		Permit: func() policy.ApprovalCheck {
			return policy.ApprovalCheckOf(e.approvals(ctx, client.ObjectKeyFromObject(obj)), e.ahead(obj, seen), step, e.now())
		},
		FromSpec:             func() bool { return e.originOf(ctx, obj, seen, step) == fromChange },
		NamespaceTerminating: func() bool { return deleting(obj) && e.namespaceTerminates(ctx, obj.GetNamespace()) },
		Peers:                func() ([]policy.Peer, error) { return e.operator.policies.Peers(ctx) },
	}
}

// namespaceTerminates reports whether the namespace is being deleted; not if that cannot be told. It is
// asked with a right that every operator has: a dry run of making what keeps a history.
func (e *engine[T, W]) namespaceTerminates(ctx context.Context, namespace string) bool {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "governor-probe-"}}
	err := e.client.Create(ctx, probe, client.DryRunAll)
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// bypassed is the history's record of policies that did not count; nil if all counted.
func (e *engine[T, W]) bypassed(ctx context.Context, obj T, v policy.Verdict) *history.Bypass {
	if len(v.Bypassed) == 0 {
		return nil
	}
	b := &history.Bypass{
		Reason: strings.TrimSpace(obj.GetAnnotations()[lifecycle.AnnotationBypass]), By: obj.GetAnnotations()[lifecycle.AnnotationBypassBy],
	}
	if b.By == "" {
		b.By = e.annotator(ctx, obj)
	}
	for _, r := range v.Bypassed {
		b.Policies = append(b.Policies, r.Policy)
	}
	return b
}

// annotator is the field manager that wrote the annotation, for an object whose annotation
// names no user: it is older than the admission policy that asks for the name. The cache
// has no field managers. The result is empty if the API server does not answer.
func (e *engine[T, W]) annotator(ctx context.Context, obj T) string {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(e.gvk)
	if err := e.operator.mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
		return ""
	}
	for _, f := range now.ManagedFields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+lifecycle.AnnotationBypass+`"`) {
			return f.Manager
		}
	}
	return ""
}

// passed says in an event what policies were passed, and by whose word.
func passed(b *history.Bypass) string {
	if b == nil {
		return ""
	}
	by := ""
	if b.By != "" {
		by = ", set by " + b.By
	}
	return fmt.Sprintf(" It passed %s by the annotation %s (%q%s).", policy.Said(b.Policies), lifecycle.AnnotationBypass, b.Reason, by)
}

// asksBudget reports whether the step takes a slot. A repair does not, and neither does
// the deletion of an object: it ends the object and keeps no client of it waiting.
func asksBudget(obj lifecycle.Object, s lifecycle.Step) bool {
	return s.Class.IsDisruptive() && s.Intent != lifecycle.IntentRepair && !deleting(obj)
}
