package plannertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// TestTime is the time at which worlds are judged unless a Subject says otherwise.
var TestTime = time.Unix(1_700_000_000, 0).UTC()

// Subject is what is on trial: an application's judgement and what it promises.
type Subject[T lifecycle.Resource, W any] struct {
	// Planner and Gates are those of production.
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[W]

	// Impact is that of [lifecycle.Abilities]; nil if the application has none.
	Impact func(during W) string

	// Safe returns an error if a world breaks what must always hold; nil checks nothing. A step is not to blame for what
	// was broken before it.
	Safe func(seen W) error

	// Kept returns an error if, at rest, the world is not what was wanted; nil checks nothing.
	Kept func(want T, seen W) error

	// May reports whether the rules may end with this decision though nothing is settled: Blocked, where only a person
	// can help, or a step that is held, or a wait whose end nobody can foretell. Nil means that they may not.
	May func(want T, seen W, d lifecycle.Decision) bool

	// Now is the time at which worlds are judged; zero means Noon.
	Now time.Time

	// Tell describes a world in a line; nil prints it.
	Tell func(seen W) string
}

// Fault is a kind of mistake of a Planner.
type Fault string

// The mistakes that a trial finds.
const (
	// Impure: a method answers differently to the same question, by a clock, by chance or by memory.
	Impure Fault = "Impure"
	// MutatesInput: a method changes what it was given.
	MutatesInput Fault = "MutatesInput"
	// Panics: a method panics.
	Panics Fault = "Panics"
	// Loops: the rules come back to where they were.
	Loops Fault = "Loops"
	// NonTerminating: every step changes something, and there is no end of it.
	NonTerminating Fault = "NonTerminating"
	// Stuck: a step or a wait whose Effect changes nothing, so that it would be decided again for ever.
	Stuck Fault = "Stuck"
	// GateDeadlock: a gate holds a step in a world that nothing else makes better.
	GateDeadlock Fault = "GateDeadlock"
	// NoDecision: Next says nothing, or to try again though nothing has changed.
	NoDecision Fault = "NoDecision"
	// IgnoresDeadline: a wait whose deadline has passed is decided again with the same deadline, so the engine would ask without
	// a pause.
	IgnoresDeadline Fault = "IgnoresDeadline"
	// Stops: the rules end Blocked where they should not.
	Stops Fault = "Stops"
	// Unsafe: a step breaks what must always hold.
	Unsafe Fault = "Unsafe"
	// NotConverged: the rules settle, and the world is not what was wanted.
	NotConverged Fault = "NotConverged"
	// EffectMismatch: reality is not what Effect said.
	EffectMismatch Fault = "EffectMismatch"
	// Fails: a step fails in fair weather, again and again.
	Fails Fault = "Fails"
)

// Finding is one mistake, with the story that proves it.
type Finding struct {
	// Fault is the kind of mistake.
	Fault Fault
	// Says is what is wrong, as a sentence.
	Says string
	// Want and Seen are the object and the world at the beginning.
	Want, Seen string
	// Story are the decisions from there.
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
