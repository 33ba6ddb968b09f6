package hold

import (
	"context"
	"fmt"

	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// StandIn is a step, and the object and the world that it was decided for: those of the reconcile, or those of the
// spec that worked last.
type StandIn[T lifecycle.Resource, W any] struct {
	Step     lifecycle.Step
	Want     T
	Seen     W
	Refusals []lifecycle.Refusal
}

// WithoutHeldChange returns what is done instead of the given step. Where policies hold the
// change of the spec, and the spec that worked last needs the same step, it is that of this
// spec. A repair that carries out the change, although that spec does not need it, gives way to
// the repair that that spec needs. Without one, the policies' refusals hold it. approvable says
// that approvals of the object count, as they do not for a preview of another spec. observe
// returns the world for that spec, which may see more than the present one, e.g. because it
// names the Secrets that the members accept.
func (j *Judge[T, W]) WithoutHeldChange(
	ctx context.Context, given StandIn[T, W], approvable bool, observe func(want T) (W, error),
) (StandIn[T, W], error) {
	obj, seen, step := given.Want, given.Seen, given.Step
	if deleting(obj) {
		return given, nil
	}
	refusals := j.holdsChanges(ctx, obj, seen, step, approvable)
	if len(refusals) == 0 {
		return given, nil
	}
	if j.carriesOut(obj, seen, step) {
		given.Refusals = refusals
	}
	last, want, found := j.Specs.WorkedBefore(ctx, obj)
	switch found {
	case specchange.FromNew:
		given.Refusals = nil
		return given, nil
	case specchange.FromChange:
		return given, nil
	}
	if protect := j.Abilities.Protect; protect != nil {
		protect(obj, want)
	}
	seen, err := observe(want)
	if err != nil {
		return given, err
	}
	decision, _ := j.Next(want, seen)
	next, ok := neededInstead(decision, step, len(given.Refusals) > 0 || step.Class.IsDestructive())
	if !ok {
		return given, nil
	}
	if SameTarget(next, step) {
		next.Cause = step.Cause
	}
	if !next.Same(step) {
		next.Message += fmt.Sprintf(" It uses the spec of revision %d, because a policy holds the present one.", last.Number)
	}
	return StandIn[T, W]{Step: next, Want: want, Seen: seen}, nil
}

// carriesOut reports whether the step is a repair that carries out a change of the spec.
func (j *Judge[T, W]) carriesOut(obj T, seen W, step lifecycle.Step) bool {
	applies := j.Abilities.AppliesChange
	return step.Intent == lifecycle.IntentRepair && applies != nil && applies(obj, seen, step)
}

// neededInstead returns the step of the decision, or of those behind it, that does the same to the same
// target. If the change must stay out, or the step destroys what the other spec would keep, any other repair will do, but none
// that puts another part of that spec into effect: the present spec would turn it around at once.
func neededInstead(d lifecycle.Decision, step lifecycle.Step, anyRepair bool) (lifecycle.Step, bool) {
	for _, next := range append([]lifecycle.Decision{d}, d.Behind...) {
		if next.Outcome == lifecycle.OutcomeProceed && SameTarget(next.Step, step) {
			return next.Step, true
		}
	}
	if !d.IsRepair() {
		d = d.Instead(nil)
	}
	return d.Step, anyRepair && d.IsRepair() && d.Outcome == lifecycle.OutcomeProceed && d.Step.Cause != lifecycle.CauseSpecChange
}

// SameTarget reports whether both steps do the same to the same target.
func SameTarget(a, b lifecycle.Step) bool { return a.Name == b.Name && a.Target == b.Target }

// holdsChanges returns the policies that would hold a disruptive change of the object now, or an
// irreversible one if the step is that.
func (j *Judge[T, W]) holdsChanges(ctx context.Context, obj T, seen W, step lifecycle.Step, approvable bool) []lifecycle.Refusal {
	about := j.Policies.Selecting(obj)
	if len(about) == 0 {
		return nil
	}
	if step.Intent, step.Cause = lifecycle.IntentChange, lifecycle.CauseSpecChange; step.Class != lifecycle.ClassIrreversible {
		step.Class = lifecycle.ClassDisruptive
	}
	q := j.Question(ctx, obj, seen, step)
	q.FromSpec = func() bool { return true }
	if !approvable {
		q.Permit = func() policy.ApprovalCheck { return policy.ApprovalCheck{} }
	}
	return about.Judge(q).Refusals
}
