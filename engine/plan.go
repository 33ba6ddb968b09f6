package engine

import (
	"context"
	"slices"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// report is the future in full: what is done, what it takes, and what is not known.
func (f *forecaster[T, W]) report(ctx context.Context, now, want T) preview.Report {
	e := f.engine.Load()
	if e == nil {
		return preview.Terminal(lifecycle.RetryIn(again, "NotRunning", "The operator has just started and does not know this kind yet; ask again in a few seconds."))
	}
	if deleting(want) && !e.app.Finalize && !e.app.Holdable {
		return e.clearance(ctx, now)
	}
	next, err := f.plan(ctx, now, want)
	if err != nil {
		r := preview.Terminal(cannotObserve)
		r.Unknowns, r.Operator = []string{err.Error()}, e.operator.options.Version
		return r
	}
	return e.complete(ctx, now, want, next)
}

// clearance is the end of an object whose deletion takes no steps.
func (e *engine[T, W]) clearance(ctx context.Context, now T) preview.Report {
	r := preview.Terminal(lifecycle.Settled("Deleted", "Kubernetes deletes the object and everything that belongs to it."))
	r.Operator = e.operator.options.Version
	changes, err := e.applier.PlanDeletion(ctx, now)
	r.Resources = resources(changes)
	return unsure(r, err)
}

// complete adds to the plan all that is known besides.
func (e *engine[T, W]) complete(ctx context.Context, now, want T, next future[T, W]) preview.Report {
	r := preview.Report{
		Plan: e.overseen(ctx, now, next), Paused: e.isPaused(next.want) && !deleting(next.want), Unknowns: next.unknowns, Operator: e.operator.options.Version,
	}
	if r.Paused {
		r.PausedBy = e.whyPaused(next.want)
	}
	changes, err := e.changes(ctx, now, next)
	r.Resources = resources(changes)
	if d := explain(err); err != nil && d.Outcome == lifecycle.OutcomeBlocked {
		next.Plan = e.planDespiteBlocked(ctx, now, want, next.first, &blocked{apply.BlockedObjects(err), d})
		r.Plan, err = e.overseen(ctx, now, next), nil // the first reconcile meets the same error
	}
	r = unsure(r, err)
	_, book, err := e.history.open(ctx, now)
	r.Plan = r.Expect(book.MedianDuration)
	r = unsure(r, err)
	r.Unknowns = slices.Concat(r.Unknowns, e.untriedImages(ctx, next, r), e.crowded(next.want, r.Plan))
	return r
}

// changes are those of the resources, from what there is to what there will be.
func (e *engine[T, W]) changes(ctx context.Context, now T, next future[T, W]) ([]apply.Prediction, error) {
	if deleting(next.want) {
		return e.applier.PlanDeletion(ctx, now)
	}
	wanted, err := e.app.Planner.Resources(next.want, next.seen)
	if err != nil {
		return nil, nil // the plan says so
	}
	filled, err := e.issuer.Fill(ctx, now, wanted)
	if err != nil {
		return nil, err
	}
	return e.applier.DryRun(ctx, now, filled.Objects)
}

// crowded says that others may go first.
func (e *engine[T, W]) crowded(want T, p preview.Plan) []string {
	for _, s := range p.Actions() {
		if asksBudget(want, s.Step) {
			return e.operator.budget.Crowd()
		}
	}
	return nil
}

func unsure(r preview.Report, err error) preview.Report {
	if err != nil {
		r.Unknowns = append(r.Unknowns, err.Error())
	}
	return r
}

func resources(changes []apply.Prediction) []preview.Resource {
	var all []preview.Resource
	for _, c := range changes {
		r := preview.Resource{Verb: string(c.Verb), Kind: c.Kind, Name: c.Name}
		for i, path := range c.Fields {
			field := preview.Field{Path: path}
			if i < len(c.Values) {
				field.From, field.To = c.Values[i].From, c.Values[i].To
			}
			r.Fields = append(r.Fields, field)
		}
		all = append(all, r)
	}
	return all
}
