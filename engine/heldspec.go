package engine

import (
	"context"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/lifecycle"
)

// keepHeldChangeOut makes a repair use the spec that worked last while policies hold a change of
// the spec: a StatefulSet that was deleted must not return with the change. The change follows
// as a step of its own when the policies let it pass.
func (e *engine[T, W]) keepHeldChangeOut(ctx context.Context, r *reconciliation[T, W]) {
	if r.Decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	was := r.Decision.Step
	given := hold.StandIn[T, W]{Step: was, Want: r.obj, Seen: r.seen}
	use, err := e.judge.WithoutHeldChange(ctx, given, true, func(want T) (W, error) { return e.observeFor(ctx, want) })
	if err != nil {
		r.Decision, r.Cause = explain.CannotObserve, err
		return
	}
	r.Decision.Step, r.actFor, r.actIn = use.Step, use.Want, &use.Seen
	if hold.SameTarget(use.Step, was) {
		r.Planned = was
	}
	refusals := append(use.Refusals, e.judge.Objections(use.Want, use.Seen, use.Step)...)
	if len(refusals) == 0 && !hold.SameTarget(use.Step, was) {
		r.Decision.Reason, r.Decision.Message = use.Step.Reason, use.Step.Message
		refusals = e.permitted(ctx, r, use.Step)
	}
	if len(refusals) > 0 {
		r.Hold(r.Decision, refusals)
	}
}
