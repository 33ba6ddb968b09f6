package sim

import (
	"errors"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/stuck"
)

// process is what the operator remembers until it ends.
type process struct{ stuck stuck.Steps }

// pastStuck is the decision while steps rest that came to nothing, as the engine makes it.
func (w *world[T, W]) pastStuck(d lifecycle.Decision) lifecycle.Decision {
	generation := w.want.GetGeneration()
	if d.Outcome == lifecycle.OutcomeSettled {
		w.worked[generation] = true
	}
	w.process.stuck = w.process.stuck.Wanted(d, generation)
	rests := func(s lifecycle.Step) bool { return w.process.stuck.Rests(s, w.clock()) }
	next := d.Past(rests, func(s lifecycle.Step) bool { return !s.Class.IsDisruptive() && w.worked[generation] })
	if d.Outcome != lifecycle.OutcomeProceed || !rests(d.Step) {
		return next
	}
	if next.Outcome != lifecycle.OutcomeProceed {
		why := w.process.stuck.Why(d.Step)
		w.note("stuck: %s (%s)", d.Step, why.Reason)
		return lifecycle.First(why, lifecycle.RetryIn(0, d.Reason, d.Message))
	}
	w.note("%s is stuck, and a repair goes on: %s", d.Step, next.Step)
	return next
}

// try performs the step, unless the API server refuses it.
func (w *world[T, W]) try(want T, seen W, step lifecycle.Step, fx *Effects) error {
	if w.faults.lasts(Refused) && w.refused.Name == "" {
		w.refused = step
	}
	if w.refused.Name == step.Name && w.refused.Target == step.Target {
		return ErrRefused
	}
	return w.model.Act(want, seen, step, fx)
}

// tried remembers what came of the step. A step that was not begun has not failed.
func (w *world[T, W]) tried(d lifecycle.Decision, err error) lifecycle.Decision {
	if err == nil {
		w.process.stuck = w.process.stuck.Done(d.Step, w.clock())
		return d
	}
	w.note("step failed: %v", err)
	failed := lifecycle.RetryIn(0, "StepFailed", err.Error())
	if errors.Is(err, ErrRefused) {
		failed = lifecycle.Block("Forbidden", err.Error())
	}
	if deferred := (*lifecycle.Deferred)(nil); !errors.As(err, &deferred) && !errors.Is(err, ErrConflict) {
		w.process.stuck = w.process.stuck.Failed(d.Step, failed, w.clock())
	}
	return failed
}
