// Package preview says what an operator is about to do before anything happens: Next
// unrolled over Effect, with what the gates say of every step.
package preview

import (
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// Limit is how many steps a plan has at most. What needs more does not converge.
const Limit = 500

// Plan is the future of one object as far as its rules and its world tell.
type Plan struct {
	// Steps are in the order in which they will be taken.
	Steps []Step `json:"steps"`
	// Outcome is how it ends: Settled if everything is as declared then. Wait means
	// that a gate holds the last step, Blocked that somebody else has to act.
	Outcome lifecycle.Outcome `json:"outcome"`
	// Reason and Message are those of the decision at the end.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Step is one step of a plan, or something that is waited for.
type Step struct {
	lifecycle.Step
	// IsWait says that nothing is done: the world is on its way.
	IsWait bool `json:"awaited,omitempty"`
	// Impact says in the application's words what is left during the step.
	Impact string `json:"meanwhile,omitempty"`
	// Expected is how long it usually takes here; zero if it was never done before.
	Expected metav1.Duration `json:"expected,omitzero"`
	// Held are the gates that would hold it: those of the application then, those of
	// policies if it were to be taken now.
	Held []lifecycle.Refusal `json:"held,omitempty"`
}

// Settles reports whether the plan ends with everything as declared.
func (p Plan) Settles() bool { return p.Outcome == lifecycle.OutcomeSettled }

// Actions are the steps that do something.
func (p Plan) Actions() []Step {
	var all []Step
	for _, s := range p.Steps {
		if !s.IsWait {
			all = append(all, s)
		}
	}
	return all
}

// Simulator is what a plan is about: an application's judgement and promises.
type Simulator[T lifecycle.Resource, W any] struct {
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[W]

	// Impact is that of [lifecycle.Abilities]; nil if the application has none.
	Impact func(during W) string

	// Holds reports whether policies hold the step, and Needed whether the spec that worked
	// last needs it, too. Nil means that they do not.
	Holds, Needed func(want T, seen W, step lifecycle.Step) bool

	// Beside returns what the engine does while an object cannot be provided, and true, or how the plan ends. Nil means
	// that all objects can be provided.
	Beside func(want T, seen W, d lifecycle.Decision) (lifecycle.Decision, bool)
}

// Unroll returns the plan for the object in the world, and both as they are at its
// end. It is pure, and changes neither.
func (s Simulator[T, W]) Unroll(want T, seen W, now time.Time) (Plan, T, W) {
	want = want.DeepCopyObject().(T)
	var p Plan
	for len(p.Steps) < Limit {
		d := s.goesOn(want, seen, s.Planner.Next(want, seen, now))
		before := want.DeepCopyObject()
		s.Planner.Status(want, seen)
		if d.Outcome == lifecycle.OutcomeRetry && !reflect.DeepEqual(before, want) {
			continue // it waited for the status that has been written
		}
		d, on := s.beside(want, seen, d)
		if !on || d.Outcome != lifecycle.OutcomeProceed && d.Outcome != lifecycle.OutcomeWait {
			return p.end(d), want, seen
		}
		next, after := s.step(seen, d)
		p.Steps = append(p.Steps, next)
		if len(next.Held) > 0 {
			return p.end(lifecycle.Held(next.Step, next.Held[0])), want, seen
		}
		if reflect.DeepEqual(after, seen) && reflect.DeepEqual(before, want) {
			return p.end(stuck(d)), want, seen
		}
		seen = after
	}
	return p.end(nonTerminating), want, seen
}

func (s Simulator[T, W]) beside(want T, seen W, d lifecycle.Decision) (lifecycle.Decision, bool) {
	if s.Beside == nil {
		return d, true
	}
	return s.Beside(want, seen, d)
}

// goesOn returns the repair that the engine takes while policies hold the wish of the
// decision, or the decision.
func (s Simulator[T, W]) goesOn(want T, seen W, d lifecycle.Decision) lifecycle.Decision {
	if s.Holds == nil || len(d.Behind) == 0 || len(s.refusals(seen, d.Step)) > 0 || !s.Holds(want, seen, d.Step) {
		return d
	}
	next := d.Instead(func(step lifecycle.Step) bool { return s.Needed != nil && s.Needed(want, seen, step) })
	if next.Outcome != lifecycle.OutcomeProceed || s.Holds(want, seen, next.Step) {
		return d
	}
	return next
}

func (s Simulator[T, W]) refusals(seen W, step lifecycle.Step) []lifecycle.Refusal {
	during, _ := s.Planner.Effect(seen, step)
	return lifecycle.Judge(s.Gates, seen, during, step)
}

// step is the decision as a part of the plan, and the world after it.
func (s Simulator[T, W]) step(seen W, d lifecycle.Decision) (Step, W) {
	during, after := s.Planner.Effect(seen, d.Step)
	next := Step{Step: d.Step, IsWait: d.Outcome == lifecycle.OutcomeWait}
	if !next.IsWait {
		next.Held = lifecycle.Judge(s.Gates, seen, during, d.Step)
	}
	if s.Impact != nil && d.Step.Class.IsDisruptive() {
		next.Impact = s.Impact(during)
	}
	return next, after
}

func (p Plan) end(d lifecycle.Decision) Plan {
	p.Outcome, p.Reason, p.Message = d.Outcome, d.Reason, d.Message
	return p
}

// stuck is how a plan ends whose last step changes nothing: nobody can tell from here
// what comes after it.
func stuck(d lifecycle.Decision) lifecycle.Decision {
	return lifecycle.Decision{Outcome: d.Outcome, Reason: d.Reason, Message: d.Message}
}

var nonTerminating = lifecycle.Block("Endless", fmt.Sprintf(
	"The plan has more than %d steps, of which these are the first. Where so many make no sense, the rules do not come to an end: please report it.", Limit))
