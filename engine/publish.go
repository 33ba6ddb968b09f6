package engine

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// publish is the only place that makes a result public. The planner adds its status fields and
// conditions; all else is a function of the result, see package publish.
func (e *engine[T, W]) publish(ctx context.Context, r *reconciliation[T, W]) (reconcile.Result, error) {
	if r.Released {
		return reconcile.Result{}, nil
	}
	own := e.own(ctx, r) // first: it may find that the planner fails on this object
	r.Describe(own, e.now())
	return e.publisher.Publish(ctx, &r.Result, publish.Views{
		Ahead:    func() policy.RemainingPlan { return e.ahead(r) },
		Evidence: func(step lifecycle.Step) []string { return e.app.evidence(r.obj, r.seen, step) },
	})
}

// own lets the planner write its status fields and returns its conditions, or nil
// if nothing new was seen.
func (e *engine[T, W]) own(ctx context.Context, r *reconciliation[T, W]) []lifecycle.Condition {
	defer e.recoverPanic(ctx, r)
	if !r.Observed || r.Panicked {
		return nil
	}
	e.app.Planner.Status(r.obj, r.seen)
	d := r.Decision
	if r.Sight != nil {
		d = *r.Sight
	}
	return e.app.Planner.Conditions(r.obj, r.seen, d)
}

// ahead is what is left to do for the object, as a preview has it.
func (e *engine[T, W]) ahead(r *reconciliation[T, W]) policy.RemainingPlan {
	if r.heldIn != nil {
		return e.judge.Remaining(r.heldIn.obj, r.heldIn.seen)
	}
	return e.judge.Remaining(r.obj, r.seen)
}

// evidence is bounded, as the history is: so many lines of so many bytes.
func (a App[T, W]) evidence(want T, seen W, step lifecycle.Step) []string {
	if a.Abilities.Evidence == nil {
		return nil
	}
	const lines, length = 8, 200
	said := a.Abilities.Evidence(want, seen, step)
	all := slices.Clone(said[:min(len(said), lines)])
	for i, line := range all {
		all[i] = strings.ToValidUTF8(line[:min(len(line), length)], "")
	}
	return all
}
