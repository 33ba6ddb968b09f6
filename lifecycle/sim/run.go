package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// settledTicks is how many ticks a settled world must stay without any effect.
const settledTicks = 5

// failure is the panic value of a run that fails. Run recovers it.
type failure struct{ err error }

// world is one run in progress.
type world[T lifecycle.Resource, W any] struct {
	scenario Scenario[T, W]
	want     T
	model    Model[T, W]
	faults   *faultInjector
	rng      *rand.Rand
	now      time.Time     // of all clocks but the operator's
	skew     time.Duration // of the operator's clock
	past     []W
	refused  lifecycle.Step // by the API server, while the fault lasts
	worked   map[int64]bool // the generations that have settled
	process  process        // what the operator remembers
	outcome  *Outcome
}

// Run runs the scenario with the seed.
func Run[T lifecycle.Resource, W any](s Scenario[T, W], seed uint64) (out Outcome) {
	out.Seed = seed
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case failure:
			out.Err = thrown.err
		default: // a panic of the planner or the model; the transcript shows what led to it
			out.Err = fmt.Errorf("seed %d, tick %d: panic: %v\n%s", seed, out.Ticks, thrown, debug.Stack())
		}
	}()
	rng := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	want, model := s.Begin(rng)
	w := &world[T, W]{
		scenario: s, want: want, model: model, rng: rng, worked: map[int64]bool{},
		faults: newFaultInjector(rng, s.DisabledFaults), now: time.Unix(1_700_000_000, 0).UTC(), outcome: &out,
	}
	w.injectFaults()
	w.converge()
	return out
}

// recovered returns the panic value if it is an R, and panics again with any other value.
func recovered[R any](value any) (R, bool) {
	r, ok := value.(R)
	if value != nil && !ok {
		panic(value)
	}
	return r, ok
}

func (w *world[T, W]) injectFaults() {
	for range w.scenario.faultTicks() {
		w.tick()
		w.turn()
	}
}

// unattendedTicks is how many ticks without faults pass before the simulator calls Mend.
const unattendedTicks = 60

// converge runs without faults until the world has settled and stays without effects.
func (w *world[T, W]) converge() {
	w.faults.stopped = true
	w.note("the faults stop")
	var last lifecycle.Decision
	quiet := 0
	for i := range w.scenario.convergeTicks() {
		if m, ok := w.model.(Mendable); ok && i == unattendedTicks {
			w.note("a person repairs what the operator cannot")
			m.Mend()
		}
		w.tick()
		d, effects := w.turn()
		if d.Outcome != lifecycle.OutcomeSettled || effects > 0 {
			last, quiet = d, 0
			continue
		}
		if quiet++; quiet == settledTicks {
			w.checkKept()
			return
		}
	}
	w.fail("did not converge within %d ticks after the faults stopped: %s %s: %s", w.scenario.convergeTicks(), last.Outcome, last.Reason, last.Message)
}

func (w *world[T, W]) checkKept() {
	if w.scenario.Kept == nil {
		return
	}
	if err := w.scenario.Kept(w.want, w.model.Observe(w.clock())); err != nil {
		w.fail("settled, but %v", err)
	}
}

// tick advances the clock, the application, the user and the faults by one second.
func (w *world[T, W]) tick() {
	w.outcome.Ticks++
	w.faults.tick++
	w.now = w.now.Add(time.Second)
	w.faults.lasts(Outage)
	if !w.faults.lasts(Refused) {
		w.refused = lifecycle.Step{}
	}
	if !w.faults.lasts(Slow) {
		w.model.Tick(w.now, w.rng)
	}
	if w.faults.happens(Broken) {
		if what := w.model.Break(w.now, w.rng); what != "" {
			w.note("fault: %s", what)
		}
	}
	if w.scenario.Edit != nil && w.faults.happens(Edited) {
		w.scenario.Edit(w.want, w.rng)
		w.want.SetGeneration(w.want.GetGeneration() + 1)
		w.note("the user changes the object")
	}
	if w.faults.happens(Clock) {
		w.skew, w.past, w.process = w.faults.skew(), nil, process{} // a replica that begins to lead reads everything again
		w.note("the operator's clock is off by %s", w.skew)
	}
	w.check()
	w.past = append(w.past, w.model.Observe(w.clock()))
}

// clock is the time by the operator's clock.
func (w *world[T, W]) clock() time.Time { return w.now.Add(w.skew) }

func (w *world[T, W]) check() {
	if m, ok := w.model.(Truthful); ok {
		if err := m.Safe(); err != nil {
			w.fail("unsafe: %v", err)
		}
	}
	if w.scenario.Safe == nil {
		return
	}
	if err := w.scenario.Safe(w.model.Observe(w.clock())); err != nil {
		w.fail("unsafe: %v", err)
	}
}

func (w *world[T, W]) note(format string, args ...any) {
	line := fmt.Sprintf("t=%03d ", w.outcome.Ticks) + fmt.Sprintf(format, args...)
	w.outcome.Transcript = append(w.outcome.Transcript, line)
}

func (w *world[T, W]) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	w.note("FAILED: %v", err)
	panic(failure{fmt.Errorf("seed %d, tick %d: %w", w.outcome.Seed, w.outcome.Ticks, err)})
}
