package engine

import (
	"context"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// applyFailed ends the turn with an error of what is provided, unless only single objects
// cannot be as declared and the planner says which steps need them.
func (e *engine[T, W]) applyFailed(r *reconciliation[T, W], err error) {
	r.Cause = err
	d := explain.Error(err)
	able := e.app.Abilities.DependsOn != nil
	if stuck := apply.BlockedObjects(err); able && len(stuck) > 0 && !deleting(r.obj) {
		r.Blocked = &hold.Blocked{Objects: stuck, Decision: d}
		return
	}
	r.Decision = d
}

// repairDespiteBlocked returns the repair that goes on while objects cannot be provided, and
// true. Otherwise the decision is about these objects. A wait is looked at again as usual.
func (e *engine[T, W]) repairDespiteBlocked(ctx context.Context, r *reconciliation[T, W], next lifecycle.Decision) (lifecycle.Decision, bool) {
	if next.Outcome == lifecycle.OutcomeWait {
		r.ObserveAgain(next, e.now())
	}
	return e.judge.DespiteBlocked(ctx, r.obj, r.seen, next, r.Blocked)
}
