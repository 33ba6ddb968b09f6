package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gate is a named promise about every world of an object, also about the world during a step.
type Gate[T, W any] struct {
	// Name is the promise, e.g. KeepsQuorum. Users see it when the gate holds a step.
	Name string

	// Absolute refuses a Destructive or Irreversible step for every violation during the
	// step, also for one that the step does not make worse. A step that destroys nothing
	// passes if it makes nothing worse, so that repairs go on.
	Absolute bool

	// Violation measures how badly a world violates the promise to the object: 0 if the world
	// keeps it, and more the worse the violation is. It is pure.
	Violation func(want T, seen W) int

	// Message explains to the user what the step would violate, and what would let it pass.
	Message func(want T, before, during W, step Step) string
}

// Refusal is the objection of one gate to one step.
type Refusal struct {
	// Gate is the name of the gate.
	Gate string `json:"gate"`
	// Message is the objection as a sentence for the user.
	Message string `json:"message"`
	// Policy is the name of the OperationPolicy that has the gate. It is empty for a gate of
	// the application or of the operator.
	Policy string `json:"policy,omitempty"`
	// Until is when the gate opens by itself; zero if it opens by no time alone.
	Until time.Time `json:"until,omitzero"`
}

// By names the origin of the objection, as a part of a sentence.
func (r Refusal) By() string {
	if r.Policy != "" {
		return fmt.Sprintf("the policy %q", r.Policy)
	}
	return "the gate " + r.Gate
}

// Judge returns the objection of the gate, or nil. A gate objects if the world during the
// step violates the promise worse than the world before. A step that makes nothing worse
// passes, so no gate blocks its own repair. An absolute gate objects to every destructive
// step while the promise is violated.
func (g Gate[T, W]) Judge(want T, before, during W, step Step) *Refusal {
	harm := g.Violation(want, during)
	absolute := g.Absolute && step.Class.IsDestructive()
	if harm == 0 || !absolute && harm <= g.Violation(want, before) {
		return nil
	}
	return &Refusal{Gate: g.Name, Message: g.Message(want, before, during, step)}
}

// Judge returns the objections of all gates to the step, in the order of the gates.
func Judge[T, W any](gates []Gate[T, W], want T, before, during W, step Step) []Refusal {
	var refusals []Refusal
	for _, g := range gates {
		if r := g.Judge(want, before, during, step); r != nil {
			refusals = append(refusals, *r)
		}
	}
	return refusals
}

const (
	// ReasonHeldByGate is the reason of a decision whose step a gate of the application holds.
	ReasonHeldByGate = "HeldByGate"
	// ReasonHeldByPolicy is the reason of a decision whose step an OperationPolicy holds.
	ReasonHeldByPolicy = "HeldByPolicy"
)

// IsHeld reports whether the decision waits because a gate or a policy holds its step.
func (d Decision) IsHeld() bool {
	return d.Reason == ReasonHeldByGate || d.Reason == ReasonHeldByPolicy
}

// Held returns the decision about a step that has at least one refusal. It is a wait,
// because gates open when the world gets better, or at a time. Its message names all
// refusals.
func Held(step Step, refusals ...Refusal) Decision {
	d := Decision{Outcome: OutcomeWait, Reason: ReasonHeldByGate, Step: step}
	if slices.ContainsFunc(refusals, func(r Refusal) bool { return r.Policy != "" }) {
		d.Reason = ReasonHeldByPolicy
	}
	var said []string
	for _, r := range refusals {
		said = append(said, "by "+r.By()+": "+r.Message)
	}
	d.Message = "The step " + step.String() + " is held " + strings.Join(said, "; and ")
	return d
}
