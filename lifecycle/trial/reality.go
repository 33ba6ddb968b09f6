package trial

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// Reality is a model to compare Effect with.
type Reality[T lifecycle.Custom, W any] struct {
	// Life is the one that package sim lives. Its storm and patience count ticks here, too.
	Life sim.Life[T, W]

	// Essence returns what Effect speaks of, of a world and a step: without the names of pods, which nobody can
	// foretell, and without what goes on elsewhere at the same time. Nil means everything.
	Essence func(seen W, step lifecycle.Step) any

	// Tell describes a world in a line; nil prints it.
	Tell func(seen W) string
}

// Effects lives lives in fair weather and fails the test with the shortest story in which reality is not what Effect
// said: a world that never comes, a promise that is broken worse than foretold, a step that fails, a life that does not
// settle.
func Effects[T lifecycle.Custom, W any](t sim.T, r Reality[T, W], lives int) {
	t.Helper()
	if worst := r.Survey(lives); worst != nil {
		t.Fatalf("%v", worst)
	}
}

// Survey lives the lives with the seeds from 1 and returns the finding with the shortest story, or nil. Lives in which
// nothing breaks and nobody changes their mind come first: what they prove needs no more.
func (r Reality[T, W]) Survey(lives int) *Finding {
	quiet, undisturbed := r, r
	quiet.Life.Edit = nil
	for _, simpler := range []struct {
		Reality[T, W]
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

// walk is one life in fair weather.
type walk[T lifecycle.Custom, W any] struct {
	Reality[T, W]
	stage  *Stage[T, W]
	chance *rand.Rand
	breaks bool
	story  []string
	fails  map[string]int
}

func (r Reality[T, W]) live(seed uint64, breaks bool) *Finding {
	chance := rand.New(rand.NewPCG(seed, ^seed))
	want, model := r.Life.Begin(chance)
	w := &walk[T, W]{
		Reality: r, chance: chance, breaks: breaks, fails: map[string]int{},
		stage: &Stage[T, W]{Planner: watched[T, W]{r.Life.Planner}, Gates: r.Life.Gates, Want: want, Model: model, Now: Noon, chance: chance},
	}
	found := &Finding{Want: written(want), Seen: w.tell(model.Observe(Noon))}
	b := caught(w.walk)
	if b == nil {
		return nil
	}
	found.Fault, found.Story = b.fault, w.story
	found.Says = fmt.Sprintf("%s (life %d)", b.says, seed)
	return found
}

func (r Reality[T, W]) tell(seen W) string {
	if r.Tell != nil {
		return r.Tell(seen)
	}
	return fmt.Sprintf("%+v", seen)
}

func (r Reality[T, W]) essence(seen W, step lifecycle.Step) any {
	if r.Essence == nil {
		return seen
	}
	return r.Essence(seen, step)
}

func (r Reality[T, W]) storm() int    { return orDefault(r.Life.Storm) }
func (r Reality[T, W]) patience() int { return orDefault(r.Life.Patience) }

func orDefault(ticks int) int {
	if ticks == 0 {
		return 200
	}
	return ticks
}

// walk goes from rest to rest: at each the user changes something, or something breaks.
func (w *walk[T, W]) walk() {
	w.settles()
	for range w.storm() / 20 {
		if w.breaks && w.chance.IntN(2) == 0 {
			w.told("fault: ", w.stage.Model.Break(w.stage.Now, w.chance))
		} else if w.Life.Edit != nil {
			w.Life.Edit(w.stage.Want, w.chance)
			w.stage.Want.SetGeneration(w.stage.Want.GetGeneration() + 1)
			w.told("the user wants: ", written(w.stage.Want))
		} else {
			return
		}
		w.settles()
	}
}

func (w *walk[T, W]) told(who, what string) {
	if what != "" {
		w.story = append(w.story, who+what)
	}
}

// settles takes turns until two in a row change nothing. Blocked is a rest, too: it may be right, and what breaks next
// may be a person who helps.
func (w *walk[T, W]) settles() {
	var d lifecycle.Decision
	rest, said := 0, ""
	for range w.patience() {
		if d = w.turn(); d.String() != said {
			said = d.String()
			w.story = append(w.story, said)
		}
		if d.Outcome == lifecycle.Done || d.Outcome == lifecycle.Blocked {
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
	fault(Endless, "nothing disturbs it, and it does not settle within %d ticks.", w.patience())
}

// turn is one turn of the engine, after which reality is compared with what was foretold.
func (w *walk[T, W]) turn() lifecycle.Decision {
	d, seen, err := w.stage.decide()
	if err != nil {
		fault(Fails, "%v.", err)
	}
	if d.Outcome != lifecycle.Proceeding && d.Outcome != lifecycle.Waiting {
		return d
	}
	during, after := w.stage.Planner.Effect(seen, d.Step)
	if d.Outcome == lifecycle.Waiting {
		w.comes(d, seen, during, after)
		return d
	}
	acted, err := w.stage.act(d, seen, during)
	if err != nil {
		w.failed(d, err)
	} else if acted.Outcome == lifecycle.Proceeding {
		w.comes(d, seen, during, after)
	}
	return acted
}

// failed tolerates that a step is refused now and then: the application may not be ready for it.
func (w *walk[T, W]) failed(d lifecycle.Decision, err error) {
	if w.fails[d.String()]++; w.fails[d.String()] >= w.patience() {
		fault(Fails, "%q fails in fair weather, %d times: %v.", d.Step, w.patience(), err)
	}
}

// comes watches the model until it is as foretold. A wait may end badly instead: then the rules say something else.
func (w *walk[T, W]) comes(d lifecycle.Decision, before, during, after W) {
	foretold := w.essence(after, d.Step)
	var got W
	for range w.patience() {
		got = w.stage.Model.Observe(w.stage.Now)
		w.noWorse(d, got, before, during, after)
		if alike(foretold, w.essence(got, d.Step)) {
			return
		}
		if d.Outcome == lifecycle.Waiting && w.over(d, got) {
			return
		}
		w.stage.Tick()
	}
	w.story = append(w.story, d.String())
	fault(Contradicts, "after %q the world never becomes what Effect says (-foretold +real):\n%s",
		d.Step, diff(foretold, w.essence(got, d.Step)))
}

// over reports whether the wait has ended badly: the rules speak of trouble, or wait for something else.
func (w *walk[T, W]) over(d lifecycle.Decision, got W) bool {
	now := w.stage.Planner.Next(w.stage.Want, got, w.stage.Now)
	return now.Outcome == lifecycle.Blocked || now.Repairs() || now.Outcome == lifecycle.Waiting && !now.Step.Same(d.Step)
}

// noWorse checks that no promise is broken worse than before and than foretold.
func (w *walk[T, W]) noWorse(d lifecycle.Decision, got W, foretold ...W) {
	for _, g := range w.Life.Gates {
		worst := 0
		for _, world := range foretold {
			worst = max(worst, g.Harm(world))
		}
		if g.Harm(got) > worst {
			w.story = append(w.story, d.String())
			fault(Contradicts, "%q breaks %s by %d, and Effect foretold %d at its worst: %s", d.Step, g.Name, g.Harm(got), worst, w.tell(got))
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
