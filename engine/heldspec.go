package engine

import (
	"context"
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// keepHeldChangeOut makes a repair use the spec that worked last while policies hold a change of
// the spec: a StatefulSet that was deleted must not return with the change. The change follows
// as a step of its own when the policies let it pass.
func (e *engine[T, W]) keepHeldChangeOut(ctx context.Context, r *reconciliation[T, W]) {
	if r.decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	step, want := e.withoutHeldChange(ctx, r.obj, r.seen, r.decision.Step, true)
	r.decision.Step, r.actFor = step, want
	during, _ := e.app.Planner.Effect(r.obj, r.seen, step)
	if refusals := lifecycle.Judge(e.app.Gates, r.obj, r.seen, during, step); len(refusals) > 0 {
		r.hold(r.decision, refusals)
	}
}

// withoutHeldChange returns the step, and the object that it acts for. Where policies hold the
// change of the spec, and the spec that worked last needs the same step, both are those of that
// spec. approvable says that approvals of the object count, as they do not for a preview of
// another spec.
func (e *engine[T, W]) withoutHeldChange(ctx context.Context, obj T, seen W, step lifecycle.Step, approvable bool) (lifecycle.Step, T) {
	if deleting(obj) || !e.holdsChanges(ctx, obj, seen, step, approvable) {
		return step, obj
	}
	if worked, err := e.revisions.Settled(ctx, obj); worked || err != nil {
		return step, obj
	}
	last, err := e.lastSettled(ctx, obj)
	if err != nil || last.Number == 0 || last.APIVersion != e.gvk.GroupVersion().String() {
		return step, obj
	}
	want, err := e.respecified(obj, last)
	if err != nil {
		return step, obj
	}
	next := e.app.Planner.Next(want, seen, e.now()).Step
	if next.Name != step.Name || next.Target != step.Target {
		return step, obj
	}
	next.Cause = step.Cause
	next.Message += fmt.Sprintf(" It uses the spec of revision %d, because a policy holds the present one.", last.Number)
	return next, want
}

// holdsChanges reports whether policies would hold a disruptive change of the object now.
func (e *engine[T, W]) holdsChanges(ctx context.Context, obj T, seen W, step lifecycle.Step, approvable bool) bool {
	about := e.selecting(obj)
	if len(about) == 0 {
		return false
	}
	step.Intent, step.Class, step.Cause = lifecycle.IntentChange, lifecycle.ClassDisruptive, lifecycle.CauseSpecChange
	q := e.question(ctx, obj, seen, step)
	q.FromSpec = func() bool { return true }
	if !approvable {
		q.Permit = func() policy.ApprovalCheck { return policy.ApprovalCheck{} }
	}
	return len(about.Judge(q).Refusals) > 0
}
