package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// Conditions of a policy, besides Ready.
const (
	// SelectsNothing is true when the policy selects no object.
	SelectsNothing = "SelectsNothing"
	// Contradicts is true when another policy conflicts with it about an object.
	Contradicts = "Contradicts"
)

// Usage is the state of a policy in the fleet.
type Usage struct {
	// Selected is the number of objects that it selects, Held the number of those with a step
	// that it holds.
	Selected, Held int
	// Against are messages about other policies that conflict with it.
	Against []string
	// Runs are the kinds that the operator runs, sorted.
	Runs []string
}

// Conditions returns the conditions of the policy's status.
func (p *Policy) Conditions(s Usage) []lifecycle.Condition {
	ready := lifecycle.Condition{
		Type: lifecycle.ConditionReady, Status: lifecycle.StatusOf(true), Reason: "Followed", Message: "It is followed.",
	}
	var more []lifecycle.Condition
	add := func(kind, message string) {
		more = append(more, lifecycle.Condition{Type: kind, Status: lifecycle.StatusOf(true), Reason: kind, Message: message})
		ready.Reason, ready.Message = kind, message
	}
	if s.Selected == 0 {
		add(SelectsNothing, p.nothing(s.Runs))
	}
	if len(s.Against) > 0 {
		add(Contradicts, strings.Join(s.Against, " "))
	}
	if len(p.Faults) > 0 {
		ready.Status, ready.Reason = lifecycle.StatusOf(false), "Invalid"
		ready.Message = "It cannot be followed as it is written: " + strings.Join(p.Faults, "; ") + "."
	}
	return append([]lifecycle.Condition{ready}, more...)
}

// nothing returns why no object is selected, if that is known.
func (p *Policy) nothing(runs []string) string {
	var unknown []string
	for _, kind := range p.spec.Selector.Kinds {
		short, _, _ := strings.Cut(kind, ".")
		if !slices.Contains(runs, short) {
			unknown = append(unknown, kind)
		}
	}
	if len(unknown) == 0 {
		return "No object has the kind, the namespace and the labels that spec.selector asks for."
	}
	return fmt.Sprintf("The operator runs no %s (spec.selector.kinds); it runs %s.", strings.Join(unknown, ", "), strings.Join(runs, ", "))
}
