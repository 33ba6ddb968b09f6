package engine

import (
	"context"
	"slices"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
)

func (e *engine[T, W]) provide(ctx context.Context, r *reconciliation[T, W]) {
	lenient := e.policies.ReportsDrift(r.obj) && !deleting(r.obj)
	due, still := e.applyCache.Unchanged(r.Key, r.obj, r.seen, e.now())
	if still && !lenient {
		r.Due = due
		return
	}
	news := e.applyCache.News(r.Key)
	wanted, err := e.app.Planner.Resources(r.obj, r.seen)
	if err != nil {
		r.Cause = err
		r.Decision = explain.Rendering(err)
		return
	}
	r.Drift = e.isProvided(ctx, r)
	err = e.apply(ctx, r, wanted, lenient)
	switch {
	case err != nil:
		e.applyFailed(r, err)
	case !lenient && e.noteOverridden(r):
	case len(r.Changes) == 0 && !lenient:
		e.applyCache.Learn(r.Key, news, memory.NewBasis(r.obj, r.seen, r.Due))
	}
}

// apply makes the wanted objects exist, with the passwords and certificates that they ask for. If it
// is lenient, what others changed stays.
func (e *engine[T, W]) apply(ctx context.Context, r *reconciliation[T, W], wanted []lifecycle.Object, lenient bool) error {
	filled, err := e.filler.Fill(ctx, r.obj, wanted)
	if err != nil {
		return err
	}
	r.Due = filled.Due
	if lenient {
		err = e.applyAroundDrift(ctx, r, wanted, filled.Objects)
	} else {
		r.Changes, err = e.applier.Apply(ctx, r.obj, filled.Objects)
	}
	r.Issued = written(filled.Issued, r.Changes)
	return err
}

// written are those whose Secret was changed: a refused write has issued nothing.
func written(all []certificate.Issued, changes []apply.Change) []certificate.Issued {
	return slices.DeleteFunc(all, func(i certificate.Issued) bool {
		return !slices.ContainsFunc(changes, func(c apply.Change) bool { return c.Kind == "Secret" && c.Name == i.Secret })
	})
}

// noteOverridden reports whether an admission webhook or policy keeps an object from being as declared. The status
// names it, and the object is applied again after a while.
func (e *engine[T, W]) noteOverridden(r *reconciliation[T, W]) bool {
	drifts, retry := e.applier.Overridden(r.Key)
	if len(drifts) == 0 {
		return false
	}
	r.Drifts = append(r.Drifts, drifts...)
	if r.Due.IsZero() || retry.Before(r.Due) {
		r.Due = retry
	}
	return true
}
