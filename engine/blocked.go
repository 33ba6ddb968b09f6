package engine

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// blocked are objects that cannot be applied before a user acts.
type blocked struct {
	objects  []*apply.Failure
	decision lifecycle.Decision
}

// fact is the condition while repairs go on despite such objects.
func (b *blocked) fact() []lifecycle.Condition {
	if b == nil {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionResourcesBlocked, Status: metav1.ConditionTrue, Reason: b.decision.Reason, Message: b.decision.Message,
	}}
}

// applyFailed ends the turn with an error of what is provided, unless only single objects
// cannot be as declared and the planner says which steps need them.
func (e *engine[T, W]) applyFailed(r *reconciliation[T, W], err error) {
	r.cause = err
	d := explain(err)
	able := e.app.Abilities.DependsOn != nil
	if stuck := apply.BlockedObjects(err); able && len(stuck) > 0 && !deleting(r.obj) {
		r.blocked = &blocked{stuck, d}
		return
	}
	r.decision = d
}

// repairDespiteBlocked returns the repair that goes on while objects cannot be provided, and
// true. Otherwise the decision is about these objects. A wait is looked at again as usual.
func (e *engine[T, W]) repairDespiteBlocked(ctx context.Context, r *reconciliation[T, W], next lifecycle.Decision) (lifecycle.Decision, bool) {
	if next.Outcome == lifecycle.OutcomeWait && next.After > 0 {
		r.again = e.now().Add(next.After)
	}
	return e.despiteBlocked(ctx, r.obj, r.seen, next, r.blocked)
}

// despiteBlocked is besideBlocked for any object and world, and writes nothing.
func (e *engine[T, W]) despiteBlocked(ctx context.Context, obj T, seen W, next lifecycle.Decision, b *blocked) (lifecycle.Decision, bool) {
	if !e.restores(ctx, obj, seen, next) {
		next = next.Instead(func(s lifecycle.Step) bool { return e.neededBefore(ctx, obj, seen, s) })
	}
	if next.Outcome == lifecycle.OutcomeProceed && !e.needsBlocked(obj, next.Step, b) {
		return next, true
	}
	return b.decision, false
}

// restores reports whether the decision is to wait, or a step that brings back what the
// world lost: a repair, or a routine step that a spec which has worked needs.
func (e *engine[T, W]) restores(ctx context.Context, obj T, seen W, d lifecycle.Decision) bool {
	step := d.Step
	return d.Outcome == lifecycle.OutcomeWait || d.Outcome == lifecycle.OutcomeProceed && (step.Intent == lifecycle.IntentRepair ||
		!step.Class.IsDisruptive() && e.originOf(ctx, obj, seen, step) == fromWorld)
}

func (e *engine[T, W]) needsBlocked(obj T, step lifecycle.Step, b *blocked) bool {
	dependsOn := e.app.Abilities.DependsOn
	return dependsOn == nil || slices.ContainsFunc(b.objects, func(f *apply.Failure) bool {
		return dependsOn(obj, step, f.Kind, f.Object)
	})
}

// planDespiteBlocked is the plan of the repairs that go on while objects cannot be provided. What comes after a wait is part of
// it; it ends with what has to be done about these objects.
func (e *engine[T, W]) planDespiteBlocked(ctx context.Context, now, want T, seen W, b *blocked) preview.Plan {
	plan := preview.Terminal(b.decision).Plan
	if len(b.objects) == 0 || deleting(want) {
		return plan
	}
	subject := e.foreseer(ctx, now, want)
	subject.Beside = func(want T, seen W, d lifecycle.Decision) (lifecycle.Decision, bool) {
		if d.Outcome == lifecycle.OutcomeWait {
			return d, true
		}
		return e.despiteBlocked(ctx, want, seen, d, b)
	}
	goesOn, _, _ := subject.Unroll(want, seen, e.now())
	plan.Steps = goesOn.Steps
	for len(plan.Steps) > 0 && plan.Steps[len(plan.Steps)-1].IsWait {
		plan.Steps = plan.Steps[:len(plan.Steps)-1]
	}
	return plan
}
