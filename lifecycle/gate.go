package lifecycle

// Gate is a named promise about every world, also the one during a step.
type Gate[W any] struct {
	// Name is the promise, e.g. KeepsQuorum. Users see it when a step is held.
	Name string

	// Harm measures how badly a world breaks the promise: 0 if it is kept, and
	// more the worse it is. It is pure.
	Harm func(W) int

	// Says explains to the user what would be broken during the step and what
	// would let it pass.
	Says func(before, during W, step Step) string
}

// Refusal is one gate's objection to one step.
type Refusal struct {
	// Gate is the name of the gate that objects.
	Gate string `json:"gate"`
	// Message is its sentence for the user.
	Message string `json:"message"`
}

// Judge returns the gate's objection, or nil. It objects only if the world during
// the step breaks the promise, and worse than the world before: a step that makes
// nothing worse passes, so no gate can block its own repair.
func (g Gate[W]) Judge(before, during W, step Step) *Refusal {
	harm := g.Harm(during)
	if harm == 0 || harm <= g.Harm(before) {
		return nil
	}
	return &Refusal{Gate: g.Name, Message: g.Says(before, during, step)}
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

// HeldByGate is the reason of a step that is held.
const HeldByGate = "HeldByGate"

// Held is the decision that a refusal makes of a step: waiting, because gates
// open by themselves when the world gets better.
func Held(step Step, r Refusal) Decision {
	d := Decision{Outcome: Waiting, Reason: HeldByGate, Step: step}
	d.Message = "The step " + step.String() + " is held by the gate " + r.Gate + ": " + r.Message
	return d
}
