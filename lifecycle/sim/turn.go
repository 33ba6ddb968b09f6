package sim

import (
	"reflect"

	"github.com/governor-dev/governor/lifecycle"
)

// turn runs the engine's stages on the model: observe, provide, decide, judge, act. It
// returns the decision and the number of effects.
func (w *world[T, W]) turn() (d lifecycle.Decision, effects int) {
	if w.faults.lasts(LostWatch) {
		return lifecycle.Decision{}, 0
	}
	fx := &Effects{faults: w.faults, note: w.note, check: w.check}
	defer func() {
		effects = fx.count
		c, crashed := recovered[crash](recover())
		if crashed {
			w.note("the operator crashes before: %s", c.before)
			w.process = process{}
		}
		if crashed || effects > 0 {
			w.past = nil // the cache shows own writes, and a new process reads everything again
		}
	}()
	seen := w.observe()
	d = w.decide(seen, fx)
	w.publish(seen, fx)
	return d, fx.count
}

// publish writes the planner's status fields, as an effect if they changed. What a
// planner stores there survives a crash only after that write.
func (w *world[T, W]) publish(seen W, fx *Effects) {
	next := w.want.DeepCopyObject().(T)
	w.scenario.Planner.Status(next, seen)
	if reflect.DeepEqual(next, w.want) {
		return
	}
	if err := fx.Do("write status", func() error { w.want = next; return nil }); err != nil {
		w.note("status not written: %v", err)
	}
}

// observe returns the present world, or a stale one since the operator's last write.
func (w *world[T, W]) observe() W {
	if len(w.past) > 1 && w.faults.happens(StaleCache) {
		age := w.rng.IntN(len(w.past))
		w.note("the cache is %d ticks old", len(w.past)-1-age)
		return w.past[age]
	}
	return w.model.Observe(w.clock())
}

func (w *world[T, W]) decide(seen W, fx *Effects) lifecycle.Decision {
	want := w.want.DeepCopyObject().(T)
	resources, err := w.scenario.Planner.Resources(want, seen)
	if err != nil {
		w.fail("resources: %v", err)
	}
	if err := w.model.Provide(want, resources, fx); err != nil {
		return lifecycle.RetryIn(0, "ApplyFailed", err.Error())
	}
	d := w.pastStuck(w.next(want, seen))
	if d.Outcome == lifecycle.OutcomeProceed {
		return w.act(want, seen, d, fx)
	}
	return d
}

// next asks the planner twice, because a pure planner gives the same answer.
func (w *world[T, W]) next(want T, seen W) lifecycle.Decision {
	d := w.scenario.Planner.Next(want, seen, w.clock())
	if again := w.scenario.Planner.Next(want, seen, w.clock()); !reflect.DeepEqual(d, again) {
		w.fail("Next is not pure, its answers to the same input differ: %s; %s", d, again)
	}
	if w.scenario.ReportsDrift {
		d, _ = d.SpareDrift()
	}
	return d
}

func (w *world[T, W]) act(want T, seen W, d lifecycle.Decision, fx *Effects) lifecycle.Decision {
	during, _ := w.scenario.Planner.Effect(want, seen, d.Step)
	held := lifecycle.Judge(w.scenario.Gates, want, seen, during, d.Step)
	if len(held) == 0 && w.scenario.Hold != nil {
		if held = w.scenario.Hold(want, d.Step, w.clock()); len(held) > 0 {
			if next := d.Instead(nil); next.Outcome == lifecycle.OutcomeProceed {
				w.note("held, and a repair goes on: %s by %s", d.Step, held[0].Gate)
				return w.act(want, seen, next, fx)
			}
		}
	}
	if len(held) > 0 {
		w.note("held: %s by %s", d.Step, held[0].Gate)
		return lifecycle.Held(d.Step, held...)
	}
	w.note("step: %s (%s)", d.Step, d.Reason)
	w.outcome.Steps++
	return w.tried(d, w.try(want, seen, d.Step, fx))
}
