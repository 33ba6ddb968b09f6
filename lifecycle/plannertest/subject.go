package plannertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// TestTime is the default time at which worlds are judged.
var TestTime = time.Unix(1_700_000_000, 0).UTC()

// Subject is the application under test: its planner, its gates and its invariants.
type Subject[T lifecycle.Resource, W any] struct {
	// Planner and Gates are those of the operator.
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[T, W]

	// Impact is that of [lifecycle.Abilities]; nil if the application has none.
	Impact func(want T, during W) string

	// Safe returns an error if a world violates an invariant; nil checks nothing. A step is not blamed for a violation
	// that existed before it.
	Safe func(seen W) error

	// Kept returns an error if a settled world does not satisfy the spec; nil checks nothing.
	Kept func(want T, seen W) error

	// May reports whether the rules may end with this decision without being settled: Blocked, if only a person can
	// help, or a held step, or a wait with an unpredictable end. Nil means that they may not.
	May func(want T, seen W, d lifecycle.Decision) bool

	// Now is the time at which worlds are judged; zero means TestTime.
	Now time.Time

	// Tell describes a world in one line; nil prints it.
	Tell func(seen W) string
}

// Fault is a kind of mistake of a Planner.
type Fault string

// The mistakes that the kit finds.
const (
	// FaultImpure: a method returns different results for the same arguments, because of a clock, randomness or state.
	FaultImpure Fault = "Impure"
	// FaultMutatesInput: a method modifies its arguments.
	FaultMutatesInput Fault = "MutatesInput"
	// FaultPanics: a method panics.
	FaultPanics Fault = "Panics"
	// FaultLoops: the rules return to an earlier world.
	FaultLoops Fault = "Loops"
	// FaultNonTerminating: every step changes the world, and the rules never settle.
	FaultNonTerminating Fault = "NonTerminating"
	// FaultStuck: a step or a wait whose Effect changes nothing, so that it would be decided again forever.
	FaultStuck Fault = "Stuck"
	// FaultGateDeadlock: a gate holds a step in a world that no other step improves.
	FaultGateDeadlock Fault = "GateDeadlock"
	// FaultNoDecision: Next returns no outcome, or OutcomeRetry although nothing has changed.
	FaultNoDecision Fault = "NoDecision"
	// FaultIgnoresDeadline: Next returns a wait with the same deadline after that deadline, so the engine would reconcile
	// without a pause.
	FaultIgnoresDeadline Fault = "IgnoresDeadline"
	// FaultStops: the rules end with Blocked without permission of May.
	FaultStops Fault = "Stops"
	// FaultUnsafe: a step violates an invariant.
	FaultUnsafe Fault = "Unsafe"
	// FaultNotConverged: the rules settle in a world that does not satisfy the spec.
	FaultNotConverged Fault = "NotConverged"
	// FaultEffectMismatch: the model differs from the prediction of Effect.
	FaultEffectMismatch Fault = "EffectMismatch"
	// FaultFails: a step fails repeatedly without faults in the model.
	FaultFails Fault = "Fails"
)

// Finding is one mistake, with the sequence of decisions that proves it.
type Finding struct {
	// Fault is the kind of mistake.
	Fault Fault
	// Says describes the mistake.
	Says string
	// Want and Seen are the object and the world at the start.
	Want, Seen string
	// Story are the decisions from the start.
	Story []string
}

// Error implements error: the finding with its story.
func (f *Finding) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n  wanted: %s\n  seen:   %s\n", f.Fault, f.Says, f.Want, f.Seen)
	for i, line := range f.Story {
		fmt.Fprintf(&b, "  %3d. %s\n", i+1, line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (s Subject[T, W]) now() time.Time {
	if s.Now.IsZero() {
		return TestTime
	}
	return s.Now
}

func (s Subject[T, W]) tell(seen W) string {
	if s.Tell != nil {
		return s.Tell(seen)
	}
	return fmt.Sprintf("%+v", seen)
}

func (s Subject[T, W]) may(want T, seen W, d lifecycle.Decision) bool {
	return s.May != nil && s.May(want, seen, d)
}

func written(want lifecycle.Object) string {
	raw, err := json.Marshal(want)
	if err != nil {
		return fmt.Sprintf("%+v", want)
	}
	return string(raw)
}
