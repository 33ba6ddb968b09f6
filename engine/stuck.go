package engine

import (
	"context"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
)

// pastStuck returns the decision while steps rest that came to nothing: the repair that goes on, or
// what is to be said about the stuck step. A wait behind that step is observed again as usual.
func (e *engine[T, W]) pastStuck(ctx context.Context, r *reconciliation[T, W], d lifecycle.Decision) lifecycle.Decision {
	known, _ := e.stuck.Get(r.Key)
	steps, now := known.Wanted(d, r.obj.GetGeneration()), e.now()
	e.stuck.Put(r.Key, steps)
	rests := func(s lifecycle.Step) bool { return steps.Rests(s, now) }
	next := d.Past(rests, func(s lifecycle.Step) bool { return e.judge.RestoresLost(ctx, r.obj, r.seen, s) })
	if d.Outcome != lifecycle.OutcomeProceed || !rests(d.Step) {
		return next
	}
	r.Stuck, r.Retry = steps.Why(d.Step), steps.Due(now)
	switch {
	case next.Outcome == lifecycle.OutcomeProceed:
		return next
	case next.IsSet():
		r.ObserveAgain(next, now)
	default:
		r.ObserveAgain(d, now)
	}
	if !r.Stuck.IsSet() { // it may still have its effect
		return lifecycle.Decision{Outcome: lifecycle.OutcomeRetry, Reason: d.Reason, Message: d.Message, Step: d.Step}
	}
	return r.Stuck
}

// noteAttempt remembers what came of the step. If the step is stuck, the next reconcile finds out
// whether another one goes on, or whether an attempt that succeeded had an effect; until then the
// status says the same as before.
func (e *engine[T, W]) noteAttempt(r *reconciliation[T, W]) {
	if r.Taken == nil || r.Planned.Name == "" {
		return
	}
	known, _ := e.stuck.Get(r.Key)
	now, wasStuck, failed := e.now(), known.Why(r.Planned).IsSet(), r.Taken.Err != nil
	steps := known.Done(r.Planned, now)
	if failed {
		steps = known.Failed(r.Planned, r.Decision, now)
	}
	e.stuck.Put(r.Key, steps)
	if why := steps.Why(r.Planned); why.IsSet() && (failed || wasStuck) {
		r.Stuck, r.Decision = why, why
		r.Retry, r.Again = steps.Due(now), now.Add(publish.BetweenSteps)
	}
}
