package policy

import (
	"fmt"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// BudgetSlot is a slot of a policy's budget, which a disruptive step needs.
type BudgetSlot struct {
	// Policy is the name of the policy.
	Policy string
	// Pool identifies the objects that share the slots.
	Pool string
	// Limit is the number of slots.
	Limit int
	// Among describes the objects that share the slots, as a part of a sentence.
	Among string
}

// BudgetSlots returns the slots that a step of the object needs, one of each.
func (s Set) BudgetSlots(o Object) []BudgetSlot {
	var all []BudgetSlot
	for _, p := range s {
		if p.spec.Budget == nil {
			continue
		}
		share := BudgetSlot{Policy: p.Name, Pool: p.Name, Limit: int(p.spec.Budget.MaxDisrupted)}
		switch p.spec.Budget.Scope {
		case v1alpha1.BudgetScopeNamespace:
			share.Pool += "/namespace/" + o.Namespace
			share.Among = "of the namespace " + o.Namespace
		case v1alpha1.BudgetScopeLabel:
			label := p.spec.Budget.Label
			share.Pool += "/label/" + o.Labels[label]
			share.Among = fmt.Sprintf("with %s=%q", label, o.Labels[label])
		default:
			share.Among = "that it selects"
		}
		all = append(all, share)
	}
	return all
}

// Full returns the refusal of a step while all slots are taken; holders are the objects that have them.
func (s BudgetSlot) Full(holders string) lifecycle.Refusal {
	return lifecycle.Refusal{Gate: GateBudget, Policy: s.Policy, Message: fmt.Sprintf(
		"of the objects %s, at most %d may be disrupted at once, and now it is %s", s.Among, s.Limit, holders)}
}
