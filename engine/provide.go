package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
)

func cannotRender(err error) lifecycle.Decision {
	if decided := (&lifecycle.DecisionError{}); errors.As(err, &decided) {
		return decided.Decision
	}
	return lifecycle.Block("CannotRender", err.Error())
}

func (e *engine[T, W]) provide(ctx context.Context, r *reconciliation[T, W]) {
	lenient := e.reportsDrift(r.obj) && !deleting(r.obj)
	due, still := e.applyCache.Unchanged(r.key, r.obj, r.seen, e.now())
	if still && !lenient {
		r.due = due
		return
	}
	news := e.applyCache.News(r.key)
	wanted, err := e.app.Planner.Resources(r.obj, r.seen)
	if err != nil {
		r.cause = err
		r.decision = cannotRender(err)
		return
	}
	r.drift = e.isProvided(ctx, r)
	err = e.apply(ctx, r, wanted, lenient)
	switch {
	case err != nil:
		e.applyFailed(r, err)
	case len(r.changes) == 0 && !lenient:
		e.applyCache.Learn(r.key, news, memory.NewBasis(r.obj, r.seen, r.due))
	}
}

// apply makes the wanted objects exist, with the certificates that they ask for. If it
// is lenient, what others changed stays.
func (e *engine[T, W]) apply(ctx context.Context, r *reconciliation[T, W], wanted []lifecycle.Object, lenient bool) error {
	filled, err := e.issuer.Fill(ctx, r.obj, wanted)
	if err != nil {
		return err
	}
	r.due = filled.Due
	if lenient {
		err = e.applyAroundDrift(ctx, r, wanted, filled.Objects)
	} else {
		r.changes, err = e.applier.Apply(ctx, r.obj, filled.Objects)
	}
	r.issued = written(filled.Issued, r.changes)
	return err
}

// written are those whose Secret was changed: a refused write has issued nothing.
func written(all []certificate.Issued, changes []apply.Change) []certificate.Issued {
	return slices.DeleteFunc(all, func(i certificate.Issued) bool {
		return !slices.ContainsFunc(changes, func(c apply.Change) bool { return c.Kind == "Secret" && c.Name == i.Secret })
	})
}
