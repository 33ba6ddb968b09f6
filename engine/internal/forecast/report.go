package forecast

import (
	"context"
	"slices"
	"time"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// Report is the future in full: what is done, what it takes, and what is not known.
func (f *Forecaster[T, W]) Report(ctx context.Context, now, want T) preview.Report {
	v := f.view.Load()
	if v == nil {
		return preview.Terminal(lifecycle.RetryIn(again, "NotRunning", "The operator has just started and does not know this kind yet; ask again in a few seconds."))
	}
	if deleting(want) && !v.DeletesInSteps {
		return v.clearance(ctx, now)
	}
	next, err := f.plan(ctx, now, want)
	if err != nil {
		r := preview.Terminal(explain.CannotObserve)
		r.Unknowns, r.Operator = []string{err.Error()}, v.Version
		return r
	}
	return v.complete(ctx, now, want, next)
}

// again is when to ask again an operator that has just started.
const again = 5 * time.Second

// clearance is the end of an object whose deletion takes no steps.
func (v *View[T, W]) clearance(ctx context.Context, now T) preview.Report {
	r := preview.Terminal(lifecycle.Settled("Deleted", "Kubernetes deletes the object and everything that belongs to it."))
	r.Operator = v.Version
	changes, err := v.Applier.PlanDeletion(ctx, now)
	r.Resources = resources(changes)
	return unsure(r, err)
}

// complete adds to the plan all that is known besides.
func (v *View[T, W]) complete(ctx context.Context, now, want T, next future[T, W]) preview.Report {
	r := preview.Report{
		Plan: v.overseen(ctx, now, next), Paused: v.Judge.IsPaused(next.want) && !deleting(next.want), Unknowns: next.unknowns, Operator: v.Version,
	}
	if r.Paused {
		r.PausedBy = v.Judge.WhyPaused(next.want)
	}
	changes, err := v.changes(ctx, now, next)
	r.Resources = resources(changes)
	if d := explain.Error(err); err != nil && d.Outcome == lifecycle.OutcomeBlocked {
		next.Plan = v.planDespiteBlocked(ctx, now, want, next.first, &hold.Blocked{Objects: apply.BlockedObjects(err), Decision: d})
		r.Plan, err = v.overseen(ctx, now, next), nil // the first reconcile meets the same error
	}
	r = unsure(r, err)
	_, book, err := v.History.Open(ctx, now)
	r.Plan = r.Expect(book.MedianDuration)
	r = unsure(r, err)
	r.Unknowns = slices.Concat(r.Unknowns, v.untriedImages(ctx, next, r), v.crowded(next.want, r.Plan))
	return r
}

// changes are those of the resources, from what there is to what there will be.
func (v *View[T, W]) changes(ctx context.Context, now T, next future[T, W]) ([]apply.Prediction, error) {
	if deleting(next.want) {
		return v.Applier.PlanDeletion(ctx, now)
	}
	wanted, err := v.Judge.Planner.Resources(next.want, next.seen)
	if err != nil {
		return nil, nil // the plan says so
	}
	filled, err := v.Filler.Fill(ctx, now, wanted)
	if err != nil {
		return nil, err
	}
	return v.Applier.DryRun(ctx, now, filled.Objects)
}

// crowded says that others may go first.
func (v *View[T, W]) crowded(want T, p preview.Plan) []string {
	for _, s := range p.Actions() {
		if budget.TakesSlot(want, s.Step) {
			return v.Budget.Crowd()
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

// planDespiteBlocked is the plan of the repairs that go on while objects cannot be provided. What comes after a wait is part of
// it; it ends with what has to be done about these objects.
func (v *View[T, W]) planDespiteBlocked(ctx context.Context, now, want T, seen W, b *hold.Blocked) preview.Plan {
	plan := preview.Terminal(b.Decision).Plan
	if len(b.Objects) == 0 || deleting(want) {
		return plan
	}
	subject := v.Judge.Foreseer(ctx, now, want)
	subject.Beside = func(want T, seen W, d lifecycle.Decision) (lifecycle.Decision, bool) {
		if d.Outcome == lifecycle.OutcomeWait {
			return d, true
		}
		return v.Judge.DespiteBlocked(ctx, want, seen, d, b)
	}
	goesOn, _, _ := subject.Unroll(want, seen, v.Judge.Now())
	plan.Steps = goesOn.Steps
	for len(plan.Steps) > 0 && plan.Steps[len(plan.Steps)-1].IsWait {
		plan.Steps = plan.Steps[:len(plan.Steps)-1]
	}
	return plan
}
