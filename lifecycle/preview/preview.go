// Package preview predicts the steps of an operator: it unrolls Next over Effect, and
// evaluates the gates for every step.
package preview

import (
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// Limit is the maximum number of steps in a plan. A longer plan does not converge.
const Limit = 500

// Plan is the predicted sequence of steps for one object.
type Plan struct {
	// Steps are in the order in which they will be taken.
	Steps []Step `json:"steps"`
	// Outcome is how the plan ends: Settled if everything is then as declared. Wait means
	// that a gate holds the last step, Blocked that a person must act.
	Outcome lifecycle.Outcome `json:"outcome"`
	// Reason and Message are those of the last decision.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Step is one step of a plan, or a wait.
type Step struct {
	lifecycle.Step
	// IsWait reports that the step is a wait, without an action.
	IsWait bool `json:"isWait,omitempty"`
	// Impact is the application's description of the availability during the step.
	Impact string `json:"impact,omitempty"`
	// Expected is the median duration in the object's history; zero if there is none.
	Expected metav1.Duration `json:"expected,omitzero"`
	// Held are the gates that would hold the step: the application's gates at its time, and
	// the policies at the present time.
	Held []lifecycle.Refusal `json:"held,omitempty"`
}

// Settles reports whether the plan ends with everything as declared.
func (p Plan) Settles() bool { return p.Outcome == lifecycle.OutcomeSettled }

// Actions returns the steps that are no waits.
func (p Plan) Actions() []Step {
	var all []Step
	for _, s := range p.Steps {
		if !s.IsWait {
			all = append(all, s)
		}
	}
	return all
}

// Simulator computes plans from an application's planner and gates.
type Simulator[T lifecycle.Resource, W any] struct {
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[T, W]

	// ReportsDrift says that the drift policy is Report: see [lifecycle.Decision.Drift].
	ReportsDrift bool

	// Impact is that of [lifecycle.Abilities]; nil if the application has none.
	Impact func(want T, during W) string

	// Holds reports whether policies hold the step, and Needed whether the spec that worked
	// last needs it, too. Nil means that they do not.
	Holds, Needed func(want T, seen W, step lifecycle.Step) bool

	// WithoutHeldChange returns the step as the engine takes it while policies hold the change of the spec, or the refusals that
	// hold the step with the change. Nil means as it is.
	WithoutHeldChange func(want T, seen W, step lifecycle.Step) (lifecycle.Step, []lifecycle.Refusal)

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
		d := s.goesOn(want, seen, s.next(want, seen, now))
		before := want.DeepCopyObject()
		s.Planner.Status(want, seen)
		if d.Outcome == lifecycle.OutcomeRetry && !reflect.DeepEqual(before, want) {
			continue // it waited for the status that has been written
		}
		d, on := s.beside(want, seen, d)
		if !on || d.Outcome != lifecycle.OutcomeProceed && d.Outcome != lifecycle.OutcomeWait {
			return p.end(d), want, seen
		}
		next, after := s.step(want, seen, d)
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

func (s Simulator[T, W]) next(want T, seen W, now time.Time) lifecycle.Decision {
	d := s.Planner.Next(want, seen, now)
	if s.ReportsDrift {
		d, _ = d.SpareDrift()
	}
	return d
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
	if s.Holds == nil || len(d.Behind) == 0 || len(s.refusals(want, seen, d.Step)) > 0 || !s.Holds(want, seen, d.Step) {
		return d
	}
	next := d.Instead(func(step lifecycle.Step) bool { return s.Needed != nil && s.Needed(want, seen, step) })
	if next.Outcome != lifecycle.OutcomeProceed || s.Holds(want, seen, next.Step) {
		return d
	}
	return next
}

func (s Simulator[T, W]) refusals(want T, seen W, step lifecycle.Step) []lifecycle.Refusal {
	during, _ := s.Planner.Effect(want, seen, step)
	return lifecycle.Judge(s.Gates, want, seen, during, step)
}

// step is the decision as a part of the plan, and the world after it.
func (s Simulator[T, W]) step(want T, seen W, d lifecycle.Decision) (Step, W) {
	var refusals []lifecycle.Refusal
	if s.WithoutHeldChange != nil && d.Outcome == lifecycle.OutcomeProceed {
		d.Step, refusals = s.WithoutHeldChange(want, seen, d.Step)
	}
	during, after := s.Planner.Effect(want, seen, d.Step)
	next := Step{Step: d.Step, IsWait: d.Outcome == lifecycle.OutcomeWait}
	if !next.IsWait {
		next.Held = append(lifecycle.Judge(s.Gates, want, seen, during, d.Step), refusals...)
	}
	if s.Impact != nil && d.Step.Class.IsDisruptive() {
		next.Impact = s.Impact(want, during)
	}
	return next, after
}

func (p Plan) end(d lifecycle.Decision) Plan {
	p.Outcome, p.Reason, p.Message = d.Outcome, d.Reason, d.Message
	return p
}

// stuck ends a plan whose last step changes nothing, so that its successor is unknown.
func stuck(d lifecycle.Decision) lifecycle.Decision {
	return lifecycle.Decision{Outcome: d.Outcome, Reason: d.Reason, Message: d.Message}
}

var nonTerminating = lifecycle.Block("NonTerminating", fmt.Sprintf(
	"The plan has more than %d steps, of which these are the first. If so many are implausible, the rules do not converge: please report a bug.", Limit))
