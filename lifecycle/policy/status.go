package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// Conditions of a policy, besides Ready.
const (
	// ConditionSelectsNothing is true when the policy selects no object.
	ConditionSelectsNothing = "SelectsNothing"
	// ConditionConflicting is true when another policy conflicts with it about an object.
	ConditionConflicting = "Conflicting"
)

// ReasonNamespacesUnknown is the reason of a policy that selects by labels of namespaces, which
// the operator does not know.
const ReasonNamespacesUnknown = "NamespacesUnknown"

const namespacesUnknown = "spec.selector.namespaceSelector is not in effect: the operator cannot read the labels of namespaces. " +
	"The policy holds steps of objects in every namespace that its other fields select; its paused, driftPolicy Report, onFailure Rollback " +
	"and nodeMaintenance are in effect for none. Grant the operator the verbs list and watch on namespaces, " +
	"or use spec.selector.namespaces."

// Usage is the state of a policy in the fleet.
type Usage struct {
	// Selected is the number of objects that it selects, Held the number of those with a step
	// that it holds.
	Selected, Held int
	// Against are messages about other policies that conflict with it.
	Against []string
	// Runs are the kinds that the operator runs, sorted.
	Runs []string
	// NamespacesUnknown reports that the operator does not know the labels of namespaces.
	NamespacesUnknown bool
}

// Conditions returns the conditions of the policy's status.
func (p *Policy) Conditions(s Usage) []lifecycle.Condition {
	ready := lifecycle.Condition{
		Type: lifecycle.ConditionReady, Status: lifecycle.StatusOf(true), Reason: "InEffect", Message: "The policy is in effect.",
	}
	var more []lifecycle.Condition
	add := func(kind, message string) {
		more = append(more, lifecycle.Condition{Type: kind, Status: lifecycle.StatusOf(true), Reason: kind, Message: message})
		ready.Reason, ready.Message = kind, message
	}
	if s.Selected == 0 {
		add(ConditionSelectsNothing, p.nothing(s.Runs))
	}
	if len(s.Against) > 0 {
		add(ConditionConflicting, strings.Join(s.Against, " "))
	}
	if p.SelectsByNamespace() && s.NamespacesUnknown {
		ready.Status, ready.Reason, ready.Message = lifecycle.StatusOf(false), ReasonNamespacesUnknown, namespacesUnknown
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
