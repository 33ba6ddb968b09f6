package engine

import (
	"context"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/lifecycle"
)

// pause ends the reconcile of a paused object: it was observed, and nothing is written
// but its status. Deletion ends the pause, or the object would hold back its
// namespace for ever.
func (e *engine[T, W]) pause(ctx context.Context, r *reconciliation[T, W]) {
	if r.Paused = e.judge.IsPaused(r.obj) && !deleting(r.obj); r.Paused {
		e.observeOnly(ctx, r)
		r.Decision.Reason, r.Decision.Message = lifecycle.ConditionPaused, e.judge.WhyPaused(r.obj)
	}
}

// observeOnly reports the state of a paused object and what others changed.
func (e *engine[T, W]) observeOnly(ctx context.Context, r *reconciliation[T, W]) {
	sight, spared := hold.SpareDrift(e.app.Planner.Next(r.obj, r.seen, e.now()))
	r.Sight = &sight
	wanted, err := e.app.Planner.Resources(r.obj, r.seen)
	if err == nil {
		r.Drifts, err = e.applier.FindDrift(ctx, r.obj, withoutCredentials(wanted), e.isProvided(ctx, r))
	}
	r.Drifts = append(r.Drifts, spared...)
	if err == nil {
		err = e.overdue(ctx, r, wanted)
	}
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot see all drift of a paused object", "cause", err.Error())
	}
}

// overdue names the Secrets whose certificates a pause keeps from being renewed. Nothing is
// written; the object reconciles again when the next certificate is due.
func (e *engine[T, W]) overdue(ctx context.Context, r *reconciliation[T, W], wanted []lifecycle.Object) error {
	filled, err := e.filler.Fill(ctx, r.obj, wanted)
	if err != nil {
		return err
	}
	r.Due = filled.Due
	for _, i := range filled.Issued {
		r.Overdue = append(r.Overdue, i.Secret)
	}
	slices.Sort(r.Overdue)
	r.Overdue = slices.Compact(r.Overdue)
	return nil
}
