package lifecycle

import (
	"maps"
	"time"
)

// Class says how much a step can hurt.
type Class string

const (
	// ClassRoutine steps are not noticed by clients of the application.
	ClassRoutine Class = "Routine"
	// ClassDisruptive steps may be noticed: a member is away for a while.
	ClassDisruptive Class = "Disruptive"
	// ClassDestructive steps remove data that exists elsewhere.
	ClassDestructive Class = "Destructive"
	// ClassIrreversible steps have no inverse.
	ClassIrreversible Class = "Irreversible"
)

// IsDisruptive reports whether a step of this class takes a slot of the fleet's
// pacing budget.
func (c Class) IsDisruptive() bool { return c != ClassRoutine && c != "" }

// IsDestructive reports whether a step of this class removes what cannot be had back from
// where it was.
func (c Class) IsDestructive() bool { return c == ClassDestructive || c == ClassIrreversible }

// Intent tells repairs from wishes; a repair goes before every wish.
type Intent string

const (
	// IntentChange brings the world to what the user declared.
	IntentChange Intent = "Wish"
	// IntentRepair brings back what the world lost, or finishes what was begun: neither waits.
	// What set it off, its Cause tells.
	IntentRepair Intent = "Repair"
)

// Cause is what set a step off.
type Cause string

const (
	// CauseSpecChange means that the user declared something new.
	CauseSpecChange Cause = "SpecChange"
	// CauseDrift means that someone changed what the operator provides.
	CauseDrift Cause = "Drift"
	// CauseFault means that the world broke.
	CauseFault Cause = "Fault"
	// CauseSchedule means that a planned time came.
	CauseSchedule Cause = "Schedule"
	// CausePolicy means that a declared rule asked for it.
	CausePolicy Cause = "Policy"
)

// Step is one action that can hurt, or the thing that a Wait waits for.
type Step struct {
	// Name is the verb, e.g. AddLearner; of a wait, the event, e.g. PodReady.
	Name string `json:"name"`
	// Target is what it is done to, e.g. a member's name.
	Target string `json:"target,omitempty"`
	// Class says how much it can hurt; empty means Routine.
	Class Class `json:"class,omitempty"`
	// Intent tells repairs from wishes; empty means Wish.
	Intent Intent `json:"intent,omitempty"`
	// Reason is the CamelCase fact that made the step necessary.
	Reason string `json:"reason,omitempty"`
	// Message is that fact as a sentence for the user.
	Message string `json:"message,omitempty"`
	// Cause is what set the step off. Of a step that follows from a fault a Planner need
	// not know that, and may say SpecChange: the engine knows what began it.
	Cause Cause `json:"cause,omitempty"`
	// Args are the values that Act needs beyond the target. They belong to the
	// plan: what is approved or previewed is exactly what is done.
	Args map[string]string `json:"args,omitempty"`
}

// String is the step in short: "AddLearner etcd-2".
func (s Step) String() string {
	if s.Target == "" {
		return s.Name
	}
	return s.Name + " " + s.Target
}

// Same reports whether two steps do the same thing to the same target.
func (s Step) Same(other Step) bool {
	return s.Name == other.Name && s.Target == other.Target && maps.Equal(s.Args, other.Args)
}

// Deferred is an error of Driver.Act: nothing was done, because the world has moved
// on since the step was decided, or the application refuses it for now. It is no
// failure; the step is decided upon anew.
type Deferred struct {
	// Reason says why, as a part of a sentence.
	Reason string
	// After is when the step is decided upon again, for who knows how long a refusal may
	// last. Zero is soon, and then ever later.
	After time.Duration
}

// Error implements error.
func (p *Deferred) Error() string { return p.Reason }
