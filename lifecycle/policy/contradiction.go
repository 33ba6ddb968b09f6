package policy

import (
	"fmt"
	"time"
)

// ConflictsWith returns sentences about where two policies that select the same object
// disagree, from the view of the first.
func (p *Policy) ConflictsWith(other *Policy) []string {
	var all []string
	differ := func(field, mine, theirs, wins string) {
		if mine != "" && theirs != "" && mine != theirs {
			all = append(all, fmt.Sprintf("%s is %s here and %s in the policy %q: %s wins.", field, mine, theirs, other.Name, wins))
		}
	}
	differ("spec.driftPolicy", string(p.spec.DriftPolicy), string(other.spec.DriftPolicy), "Report")
	differ("spec.onFailure", string(p.spec.OnFailure), string(other.spec.OnFailure), "Halt")
	if len(p.windows) > 0 && len(other.windows) > 0 && !p.windows.meet(other.windows) {
		all = append(all, fmt.Sprintf(
			"Its windows and those of the policy %q are never open at the same time: steps that disturb are never taken.", other.Name))
	}
	return all
}

const (
	// searchHorizon are long enough for all combinations of days and clocks that matter.
	searchHorizon = 4 * 366 * day
	// patience is how many openings are compared before it is taken that they meet.
	patience = 2000
)

// meet reports whether windows of both are ever open at the same time.
func (all windows) meet(others windows) bool {
	for _, a := range all {
		for _, b := range others {
			if a.meets(b) {
				return true
			}
		}
	}
	return false
}

func (w window) meets(other window) bool {
	end := epoch.Add(searchHorizon)
	opens := epoch
	for range patience {
		if opens = w.next(opens); opens.IsZero() || opens.After(end) {
			return false
		}
		if other.within(opens, opens.Add(w.duration)) {
			return true
		}
	}
	return true
}

// within reports whether the window is open at any time from one time to before another.
func (w window) within(from, to time.Time) bool {
	if _, open := w.closes(from); open {
		return true
	}
	next := w.next(from)
	return !next.IsZero() && next.Before(to)
}
