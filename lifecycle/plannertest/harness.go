package plannertest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// Harness is the engine's loop on a model without faults in logical time, for tests that control the events.
type Harness[T lifecycle.Resource, W any] struct {
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[T, W]

	// Hold returns why policies hold the step; nil holds none. Needed reports that the spec
	// which worked last needs a step, too; nil means that it needs none.
	Hold   func(lifecycle.Step) []lifecycle.Refusal
	Needed func(seen W, s lifecycle.Step) bool

	// Refuse reports that the API server refuses the step for ever; nil means that it refuses none.
	Refuse func(lifecycle.Step) bool

	// Want is the object; a test edits it as a user would. Turn replaces it when the status changes.
	Want T
	// Model is the application and its cluster.
	Model sim.Model[T, W]
	// Now is the logical time.
	Now time.Time
	// Steps are the taken steps, in their order.
	Steps []lifecycle.Step

	rng *rand.Rand
}

// Enter returns a harness at TestTime, with a fixed random seed.
func Enter[T lifecycle.Resource, W any](p lifecycle.Planner[T, W], gates []lifecycle.Gate[T, W], want T, m sim.Model[T, W]) *Harness[T, W] {
	return &Harness[T, W]{Planner: p, Gates: gates, Want: want, Model: m, Now: TestTime, rng: rand.New(rand.NewPCG(1, 2))}
}

// Tick advances the time by a second.
func (s *Harness[T, W]) Tick() {
	s.Now = s.Now.Add(time.Second)
	s.Model.Tick(s.Now, s.rng)
}

// Turn runs one reconcile of the engine. An error is from the model's Provide or Act.
func (s *Harness[T, W]) Turn() (lifecycle.Decision, error) {
	d, seen, err := s.decide()
	if d = s.pastRefused(d, seen); d.Reason == Refused {
		return d, nil
	}
	if err != nil || d.Outcome != lifecycle.OutcomeProceed {
		return d, err
	}
	during, _ := s.Planner.Effect(s.Want, seen, d.Step)
	return s.act(d, seen, during)
}

// Refused is the reason of the decision while the API server refuses a step, and nothing goes on.
const Refused = "Refused"

// pastRefused is the decision past the steps that the API server refuses.
func (s *Harness[T, W]) pastRefused(d lifecycle.Decision, seen W) lifecycle.Decision {
	if s.Refuse == nil || !d.IsSet() {
		return d
	}
	next := d.Past(s.Refuse, func(step lifecycle.Step) bool { return s.Needed != nil && s.Needed(seen, step) })
	if !next.IsSet() {
		return lifecycle.Block(Refused, "The API server refuses "+d.Step.String()+".")
	}
	return next
}

// decide runs the reconcile up to the step.
func (s *Harness[T, W]) decide() (d lifecycle.Decision, seen W, err error) {
	seen = s.Model.Observe(s.Now)
	objects, err := s.Planner.Resources(s.Want.DeepCopyObject().(T), seen)
	if err != nil {
		return lifecycle.Block("CannotRender", err.Error()), seen, nil
	}
	if err := s.Model.Provide(s.Want, objects, sim.NoFaults()); err != nil {
		return d, seen, fmt.Errorf("cannot provide: %w", err)
	}
	d = s.Planner.Next(s.Want, seen, s.Now)
	told := s.Want.DeepCopyObject().(T)
	s.Planner.Status(told, seen)
	s.Want = told
	return d, seen, nil
}

func (s *Harness[T, W]) act(d lifecycle.Decision, seen, during W) (lifecycle.Decision, error) {
	if held := lifecycle.Judge(s.Gates, s.Want, seen, during, d.Step); len(held) > 0 {
		return lifecycle.Held(d.Step, held[0]), nil
	}
	if s.Hold != nil {
		if held := s.Hold(d.Step); len(held) > 0 {
			return s.goOn(d, seen, held)
		}
	}
	s.Steps = append(s.Steps, d.Step)
	return d, s.Model.Act(s.Want, seen, d.Step, sim.NoFaults())
}

// goOn takes the repair behind a wish that policies hold.
func (s *Harness[T, W]) goOn(d lifecycle.Decision, seen W, held []lifecycle.Refusal) (lifecycle.Decision, error) {
	next := d.Instead(func(step lifecycle.Step) bool { return s.Needed != nil && s.Needed(seen, step) })
	if next.Outcome != lifecycle.OutcomeProceed {
		return lifecycle.Held(d.Step, held...), nil
	}
	during, _ := s.Planner.Effect(s.Want, seen, next.Step)
	return s.act(next, seen, during)
}

// Until takes turns, a second apart, until one has the outcome and reason, and returns the object. It fails the test if
// that does not come within 1000 seconds, or if the model refuses something.
func (s *Harness[T, W]) Until(t sim.T, outcome lifecycle.Outcome, reason string) T {
	t.Helper()
	var d lifecycle.Decision
	var err error
	for range 1000 {
		if d, err = s.Turn(); err == nil && d.Outcome == outcome && d.Reason == reason {
			return s.Want
		}
		s.Tick()
	}
	t.Fatalf("waited for %s %s; it is %s, %v", outcome, reason, d, err)
	return s.Want
}
