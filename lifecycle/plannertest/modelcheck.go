package plannertest

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// ModelCheck is a model to compare Effect with.
type ModelCheck[T lifecycle.Resource, W any] struct {
	// Scenario is the scenario of package sim. Its FaultTicks and ConvergeTicks count ticks here, too.
	Scenario sim.Scenario[T, W]

	// Normalize returns the part of a world that Effect predicts for a step: without the names of pods, which cannot be
	// predicted, and without unrelated changes at the same time. Nil means the whole world.
	Normalize func(seen W, step lifecycle.Step) any

	// Progress describes a world in a line; nil prints it.
	Progress func(seen W) string
}

// Effects runs the model without faults and fails the test with the shortest story in which the model differs from
// Effect: a world that is never reached, a gate that is violated more than predicted, a step that fails, a run that does
// not settle.
func Effects[T lifecycle.Resource, W any](t sim.T, r ModelCheck[T, W], lives int) {
	t.Helper()
	if worst := r.Survey(lives); worst != nil {
		t.Fatalf("%v", worst)
	}
}

// Survey runs the seeds from 1 and returns the finding with the shortest story, or nil. Runs without breaks and without
// edits of the spec come first, because their findings are simpler.
func (r ModelCheck[T, W]) Survey(lives int) *Finding {
	quiet, undisturbed := r, r
	quiet.Scenario.Edit = nil
	for _, simpler := range []struct {
		ModelCheck[T, W]
		breaks bool
	}{{quiet, false}, {undisturbed, false}, {r, true}} {
		var worst *Finding
		for seed := range uint64(lives) {
			f := simpler.live(seed+1, simpler.breaks)
			if f != nil && (worst == nil || f.shorter(worst)) {
				worst = f
			}
		}
		if worst != nil {
			return worst
		}
	}
	return nil
}

// run is one run of the model without faults.
type run[T lifecycle.Resource, W any] struct {
	ModelCheck[T, W]
	stage  *Harness[T, W]
	rng    *rand.Rand
	breaks bool
	story  []string
	fails  map[string]int
}

func (r ModelCheck[T, W]) live(seed uint64, breaks bool) *Finding {
	chance := rand.New(rand.NewPCG(seed, ^seed))
	want, model := r.Scenario.Begin(chance)
	w := &run[T, W]{
		ModelCheck: r, rng: chance, breaks: breaks, fails: map[string]int{},
		stage: &Harness[T, W]{Planner: watched[T, W]{r.Scenario.Planner}, Gates: r.Scenario.Gates, Want: want, Model: model, Now: TestTime, rng: chance},
	}
	found := &Finding{Want: written(want), Seen: w.tell(model.Observe(TestTime))}
	b := caught(w.follow)
	if b == nil {
		return nil
	}
	found.Fault, found.Story = b.fault, w.story
	found.Says = fmt.Sprintf("%s (life %d)", b.says, seed)
	return found
}

func (r ModelCheck[T, W]) tell(seen W) string {
	if r.Progress != nil {
		return r.Progress(seen)
	}
	return fmt.Sprintf("%+v", seen)
}

func (r ModelCheck[T, W]) normalize(seen W, step lifecycle.Step) any {
	if r.Normalize == nil {
		return seen
	}
	return r.Normalize(seen, step)
}

func (r ModelCheck[T, W]) faultTicks() int    { return orDefault(r.Scenario.FaultTicks) }
func (r ModelCheck[T, W]) convergeTicks() int { return orDefault(r.Scenario.ConvergeTicks) }

func orDefault(ticks int) int {
	if ticks == 0 {
		return 200
	}
	return ticks
}

// follow goes from rest to rest: at each the user changes something, or something breaks.
func (w *run[T, W]) follow() {
	w.settles()
	for range w.faultTicks() / 20 {
		if w.breaks && w.rng.IntN(2) == 0 {
			w.told("fault: ", w.stage.Model.Break(w.stage.Now, w.rng))
		} else if w.Scenario.Edit != nil {
			w.Scenario.Edit(w.stage.Want, w.rng)
			w.stage.Want.SetGeneration(w.stage.Want.GetGeneration() + 1)
			w.told("the user wants: ", written(w.stage.Want))
		} else {
			return
		}
		w.settles()
	}
}

func (w *run[T, W]) told(who, what string) {
	if what != "" {
		w.story = append(w.story, who+what)
	}
}

// settles takes turns until two in a row change nothing. Blocked is a rest, too: it may be right, and what breaks next
// may be a person who helps.
func (w *run[T, W]) settles() {
	var d lifecycle.Decision
	rest, said := 0, ""
	for range w.convergeTicks() {
		if d = w.turn(); d.String() != said {
			said = d.String()
			w.story = append(w.story, said)
		}
		if d.Outcome == lifecycle.OutcomeSettled || d.Outcome == lifecycle.OutcomeBlocked {
			rest++
		} else {
			rest = 0
		}
		if rest == 2 {
			return
		}
		w.stage.Tick()
	}
	w.story = cut(w.story)
	fault(FaultNonTerminating, "nothing disturbs it, and it does not settle within %d ticks.", w.convergeTicks())
}

// turn is one turn of the engine, after which reality is compared with what was predicted.
func (w *run[T, W]) turn() lifecycle.Decision {
	d, seen, err := w.stage.decide()
	if err != nil {
		fault(FaultFails, "%v.", err)
	}
	if d.Outcome != lifecycle.OutcomeProceed && d.Outcome != lifecycle.OutcomeWait {
		return d
	}
	during, after := w.stage.Planner.Effect(w.stage.Want, seen, d.Step)
	if d.Outcome == lifecycle.OutcomeWait {
		w.comes(d, seen, during, after)
		return d
	}
	acted, err := w.stage.act(d, seen, during)
	if err != nil {
		w.failed(d, err)
	} else if acted.Outcome == lifecycle.OutcomeProceed {
		w.comes(d, seen, during, after)
	}
	return acted
}

// failed tolerates that a step is refused now and then: the application may not be ready for it.
func (w *run[T, W]) failed(d lifecycle.Decision, err error) {
	if w.fails[d.String()]++; w.fails[d.String()] >= w.convergeTicks() {
		fault(FaultFails, "%q fails in fair weather, %d times: %v.", d.Step, w.convergeTicks(), err)
	}
}

// comes watches the model until it is as predicted. A wait may end badly instead: then the rules say something else.
func (w *run[T, W]) comes(d lifecycle.Decision, before, during, after W) {
	predicted := w.normalize(after, d.Step)
	var got W
	for range w.convergeTicks() {
		got = w.stage.Model.Observe(w.stage.Now)
		w.noWorse(d, got, before, during, after)
		if alike(predicted, w.normalize(got, d.Step)) {
			return
		}
		if d.Outcome == lifecycle.OutcomeWait && w.over(d, got) {
			return
		}
		w.stage.Tick()
	}
	w.story = append(w.story, d.String())
	fault(FaultEffectMismatch, "after %q the world never becomes what Effect says (-predicted +real):\n%s",
		d.Step, diff(predicted, w.normalize(got, d.Step)))
}

// over reports whether the wait has ended badly: the rules speak of trouble, or wait for something else.
func (w *run[T, W]) over(d lifecycle.Decision, got W) bool {
	now := w.stage.Planner.Next(w.stage.Want, got, w.stage.Now)
	return now.Outcome == lifecycle.OutcomeBlocked || now.IsRepair() || now.Outcome == lifecycle.OutcomeWait && !now.Step.Same(d.Step)
}

// noWorse checks that no promise is broken worse than before and than predicted.
func (w *run[T, W]) noWorse(d lifecycle.Decision, got W, predicted ...W) {
	for _, g := range w.Scenario.Gates {
		worst := 0
		for _, world := range predicted {
			worst = max(worst, g.Violation(w.stage.Want, world))
		}
		if g.Violation(w.stage.Want, got) > worst {
			w.story = append(w.story, d.String())
			fault(FaultEffectMismatch, "%q breaks %s by %d, and Effect predicts at most %d: %s", d.Step, g.Name, g.Violation(w.stage.Want, got), worst, w.tell(got))
		}
	}
}

func alike(a, b any) bool { return diff(a, b) == "" }

var everything = cmp.Exporter(func(reflect.Type) bool { return true })

// diff compares also what is unexported; an empty slice is no slice, as for any reader.
func diff(a, b any) string { return cmp.Diff(a, b, everything, emptyIsNil) }

var emptyIsNil = cmp.FilterPath(func(p cmp.Path) bool {
	k := p.Last().Type()
	return k != nil && (k.Kind() == reflect.Slice || k.Kind() == reflect.Map)
}, cmp.FilterValues(func(a, b any) bool {
	return reflect.ValueOf(a).Len() == 0 && reflect.ValueOf(b).Len() == 0
}, cmp.Comparer(func(any, any) bool { return true })))
