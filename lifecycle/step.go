package lifecycle

import (
	"maps"
	"time"
)

// Class is how much harm a step can do.
type Class string

const (
	// ClassRoutine steps do not affect clients of the application.
	ClassRoutine Class = "Routine"
	// ClassDisruptive steps may affect clients: a member is away for a while.
	ClassDisruptive Class = "Disruptive"
	// ClassDestructive steps remove data of which other copies exist.
	ClassDestructive Class = "Destructive"
	// ClassIrreversible steps have no inverse.
	ClassIrreversible Class = "Irreversible"
)

// IsDisruptive reports whether a step of this class takes a slot of the fleet's budget.
func (c Class) IsDisruptive() bool { return c != ClassRoutine && c != "" }

// IsDestructive reports whether a step of this class removes data.
func (c Class) IsDestructive() bool { return c == ClassDestructive || c == ClassIrreversible }

// Intent distinguishes repairs from changes. Repairs come before changes.
type Intent string

const (
	// IntentChange brings the world to what the user declared.
	IntentChange Intent = "Change"
	// IntentRepair restores what the world lost, or finishes a step that has begun. Its Cause
	// says which.
	IntentRepair Intent = "Repair"
)

// Cause is what triggered a step.
type Cause string

const (
	// CauseSpecChange means that the user changed the spec.
	CauseSpecChange Cause = "SpecChange"
	// CauseDrift means that another user or controller changed an object of the operator.
	CauseDrift Cause = "Drift"
	// CauseFault means that something failed, such as a node or a pod.
	CauseFault Cause = "Fault"
	// CauseSchedule means that a scheduled time came.
	CauseSchedule Cause = "Schedule"
	// CausePolicy means that an OperationPolicy asked for it.
	CausePolicy Cause = "Policy"
)

// Step is one action that can do harm, or what a wait waits for.
type Step struct {
	// Name is the verb, e.g. AddLearner, or the event that a wait waits for, e.g. PodReady.
	Name string `json:"name"`
	// Target is the name of what the step changes, e.g. of a member.
	Target string `json:"target,omitempty"`
	// Class is how much harm the step can do; empty means Routine.
	Class Class `json:"class,omitempty"`
	// Intent distinguishes repairs from changes; empty means Change.
	Intent Intent `json:"intent,omitempty"`
	// Reason is the CamelCase fact that makes the step necessary.
	Reason string `json:"reason,omitempty"`
	// Message is that fact as a sentence for the user.
	Message string `json:"message,omitempty"`
	// Cause is what triggered the step. A Planner may say SpecChange for a step that follows
	// from a fault: the engine knows what began it.
	Cause Cause `json:"cause,omitempty"`
	// Args are the values that Act needs besides the target. They are part of previews and
	// approvals, so that Act does exactly what was approved.
	Args map[string]string `json:"args,omitempty"`
}

// String returns the step in short: "AddLearner etcd-2".
func (s Step) String() string {
	if s.Target == "" {
		return s.Name
	}
	return s.Name + " " + s.Target
}

// Same reports whether two steps do the same to the same target.
func (s Step) Same(other Step) bool {
	return s.Name == other.Name && s.Target == other.Target && maps.Equal(s.Args, other.Args)
}

// Deferred is an error of [Driver.Act]: it did nothing, because the world has changed since
// the decision, or because the application refuses the step for now. It is no failure:
// the engine decides again.
type Deferred struct {
	// Reason is why, as a part of a sentence.
	Reason string
	// After is the time until the next decision. Zero means soon, with exponential backoff.
	After time.Duration
}

// Error implements error.
func (p *Deferred) Error() string { return p.Reason }
