package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gate is a named promise about every world, also the one during a step.
type Gate[W any] struct {
	// Name is the promise, e.g. KeepsQuorum. Users see it when a step is held.
	Name string

	// Absolute says that a Destructive or Irreversible step is refused by every breach of
	// the promise during the step, also by one that the step does not make worse. A step
	// that destroys nothing passes if it makes nothing worse, so that repairs go on.
	Absolute bool

	// Violation measures how badly a world breaks the promise: 0 if it is kept, and
	// more the worse it is. It is pure.
	Violation func(W) int

	// Message explains to the user what would be broken during the step and what
	// would let it pass.
	Message func(before, during W, step Step) string
}

// Refusal is one gate's objection to one step.
type Refusal struct {
	// Gate is the name of the gate that objects.
	Gate string `json:"gate"`
	// Message is its sentence for the user.
	Message string `json:"message"`
	// Policy is the name of the OperationPolicy whose gate it is; empty if it is one of
	// the application's own, or of the operator.
	Policy string `json:"policy,omitempty"`
	// Until is when the gate opens by itself; zero if no time alone opens it.
	Until time.Time `json:"until,omitzero"`
}

// By names who objects, as a part of a sentence.
func (r Refusal) By() string {
	if r.Policy != "" {
		return fmt.Sprintf("the policy %q", r.Policy)
	}
	return "the gate " + r.Gate
}

// Judge returns the gate's objection, or nil. It objects only if the world during
// the step breaks the promise, and worse than the world before: a step that makes
// nothing worse passes, so no gate can block its own repair. An absolute gate lets
// nothing be destroyed while its promise is broken.
func (g Gate[W]) Judge(before, during W, step Step) *Refusal {
	harm := g.Violation(during)
	absolute := g.Absolute && step.Class.IsDestructive()
	if harm == 0 || !absolute && harm <= g.Violation(before) {
		return nil
	}
	return &Refusal{Gate: g.Name, Message: g.Message(before, during, step)}
}

// Judge asks every gate about the step and returns the objections in their order.
func Judge[W any](gates []Gate[W], before, during W, step Step) []Refusal {
	var refusals []Refusal
	for _, g := range gates {
		if r := g.Judge(before, during, step); r != nil {
			refusals = append(refusals, *r)
		}
	}
	return refusals
}

const (
	// ReasonHeldByGate is the reason of a step that is held because of the world.
	ReasonHeldByGate = "HeldByGate"
	// ReasonHeldByPolicy is the reason of a step that is held because somebody said so.
	ReasonHeldByPolicy = "HeldByPolicy"
)

// IsHeld reports whether the decision is to wait because a step is held, not because
// the world is on its way.
func (d Decision) IsHeld() bool {
	return d.Reason == ReasonHeldByGate || d.Reason == ReasonHeldByPolicy
}

// Held is the decision that refusals, of which there is one at least, make of a step:
// waiting, because gates open by themselves when the world gets better, or the time
// comes. All of them are named.
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
