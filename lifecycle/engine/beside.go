package engine

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// blocked are objects that cannot be provided before somebody else acts.
type blocked struct {
	objects  []*apply.Failure
	decision lifecycle.Decision
}

// fact is the condition while repairs go on beside such objects.
func (b *blocked) fact() []lifecycle.Condition {
	if b == nil {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ResourcesBlocked, Status: metav1.ConditionTrue, Reason: b.decision.Reason, Message: b.decision.Message,
	}}
}

// stumble ends the turn with an error of what is provided, unless only single objects
// cannot be as declared and the planner says which steps need them.
func (e *engine[T, W]) stumble(r *report[T, W], err error) {
	r.cause = err
	d := explain(err)
	_, able := e.app.Planner.(lifecycle.Depender[T])
	if stuck := apply.Stuck(err); able && len(stuck) > 0 && !leaving(r.obj) {
		r.blocked = &blocked{stuck, d}
		return
	}
	r.decision = d
}

// besideBlocked returns the repair that goes on while objects cannot be provided, and
// true. Otherwise the decision is about these objects. A wait is looked at again as usual.
func (e *engine[T, W]) besideBlocked(ctx context.Context, r *report[T, W], next lifecycle.Decision) (lifecycle.Decision, bool) {
	if !e.bringsBack(ctx, r, next) {
		next = next.Instead(func(s lifecycle.Step) bool { return e.neededBefore(ctx, r.obj, r.seen, s) })
	}
	if next.Outcome == lifecycle.Proceeding && !e.needsBlocked(r, next.Step) {
		return next, true
	}
	return r.blocked.decision, false
}

// bringsBack reports whether the decision is to wait, or a step that brings back what the
// world lost: a repair, or a routine step that a spec which has worked needs.
func (e *engine[T, W]) bringsBack(ctx context.Context, r *report[T, W], d lifecycle.Decision) bool {
	if d.Outcome == lifecycle.Waiting {
		if d.After > 0 {
			r.again = e.now().Add(d.After)
		}
		return true
	}
	step := d.Step
	return d.Outcome == lifecycle.Proceeding && (step.Intent == lifecycle.Repair ||
		!step.Class.Disturbs() && e.originOf(ctx, r.obj, r.seen, step) == fromWorld)
}

func (e *engine[T, W]) needsBlocked(r *report[T, W], step lifecycle.Step) bool {
	planner, able := e.app.Planner.(lifecycle.Depender[T])
	return !able || slices.ContainsFunc(r.blocked.objects, func(f *apply.Failure) bool {
		return planner.DependsOn(r.obj, step, f.Kind, f.Object)
	})
}
