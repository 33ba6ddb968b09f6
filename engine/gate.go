package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// gate asks the application's gates about the step, then the policies, and then the budget for a
// slot. While policies hold a change, the repairs behind it go on.
func (e *engine[T, W]) gate(ctx context.Context, r *reconciliation[T, W]) {
	if r.Decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	var gated bool
	gated, r.Refusals = e.refusals(ctx, r, r.Decision.Step)
	if len(r.Refusals) > 0 && (gated || !e.repairInstead(ctx, r)) {
		r.Hold(r.Decision, r.Refusals)
	}
	e.keepHeldChangeOut(ctx, r)
}

// refusals are the objections to the step. Gates of the application are asked before all
// others, and gated says that they object.
func (e *engine[T, W]) refusals(ctx context.Context, r *reconciliation[T, W], step lifecycle.Step) (gated bool, all []lifecycle.Refusal) {
	if all = e.judge.Objections(r.obj, r.seen, step); len(all) > 0 {
		return true, all
	}
	return false, e.permitted(ctx, r, step)
}

// repairInstead decides for a repair while policies hold the change of the decision, and reports
// whether there is one. They may hold the repair, too. A wait that repairs have begun is observed
// again as if nothing were held.
func (e *engine[T, W]) repairInstead(ctx context.Context, r *reconciliation[T, W]) bool {
	next := r.Decision.Instead(func(s lifecycle.Step) bool { return e.judge.NeededBefore(ctx, r.obj, r.seen, s) })
	if next.Outcome == lifecycle.OutcomeWait {
		r.ObserveAgain(next, e.now())
	}
	if next.Outcome != lifecycle.OutcomeProceed {
		return false
	}
	next = e.withCause(ctx, r, next)
	gated, all := e.refusals(ctx, r, next.Step)
	switch {
	case gated:
		r.Hold(next, all)
	case len(all) > 0:
		return false
	default:
		r.Decision, r.Refusals = next, nil
	}
	return true
}

// permitted asks the policies about a step that the application would take, and if
// they let it pass, for a slot.
func (e *engine[T, W]) permitted(ctx context.Context, r *reconciliation[T, W], step lifecycle.Step) []lifecycle.Refusal {
	about := e.policies.Selecting(r.obj)
	v := about.Judge(e.judge.Question(ctx, r.obj, r.seen, step))
	if len(v.Refusals) > 0 {
		return v.Refusals
	}
	if budget.TakesSlot(r.obj, step) {
		refusals := e.operator.budget.Ask(e.claimOf(r.obj, about), func() { e.Wake(r.Key) })
		if r.Queued = len(refusals) > 0; r.Queued {
			return refusals
		}
	}
	r.Approval, r.Bypass = v.Approval, e.policies.Bypassed(ctx, r.obj, v)
	return nil
}

// claimOf is what the object needs to be disrupted.
func (e *engine[T, W]) claimOf(obj T, about policy.Set) budget.Claim {
	return budget.Claim{
		Holder: e.holder(client.ObjectKeyFromObject(obj)), Namespace: obj.GetNamespace(), App: e.app.Name,
		Generation: obj.GetGeneration(), Shares: about.BudgetSlots(e.policies.Subject(obj)),
	}
}
