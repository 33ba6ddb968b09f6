package policy

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// BudgetSlot is a slot that a disturbing step needs, of those that a policy has.
type BudgetSlot struct {
	// Policy is the name of the policy.
	Policy string
	// Pool names those who share the slots: the same for all objects that do.
	Pool string
	// Limit is how many slots there are.
	Limit int
	// Among says who shares them, as a part of a sentence.
	Among string
}

// BudgetSlots are the slots that a step of the object needs, one of each.
func (s Set) BudgetSlots(o Object) []BudgetSlot {
	var all []BudgetSlot
	for _, p := range s {
		if p.spec.Budget == nil {
			continue
		}
		share := BudgetSlot{Policy: p.Name, Pool: p.Name, Limit: int(p.spec.Budget.MaxDisrupted)}
		switch p.spec.Budget.Scope {
		case "Namespace":
			share.Pool += "/namespace/" + o.Namespace
			share.Among = "of the namespace " + o.Namespace
		case "Label":
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

// Full is the refusal for want of a slot; holders are those who have them.
func (s BudgetSlot) Full(holders string) lifecycle.Refusal {
	return lifecycle.Refusal{Gate: Budget, Policy: s.Policy, Message: fmt.Sprintf(
		"of the objects %s it lets %d be disturbed at once, and that is %s", s.Among, s.Limit, holders)}
}
