package policy

import (
	"fmt"
	"time"
)

// ConflictsWith describes the conflicts of two policies that select the same object, from
// the view of the first.
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
			"Its windows and those of the policy %q are never open at the same time: disruptive steps are never taken.", other.Name))
	}
	return all
}

const (
	// searchHorizon is long enough for all relevant combinations of days and clock changes.
	searchHorizon = 4 * 366 * day
	// maxOpenings is how many openings are compared before windows are assumed to overlap.
	maxOpenings = 2000
)

// meet reports whether any windows of both are open at the same time.
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
	for range maxOpenings {
		if opens = w.next(opens); opens.IsZero() || opens.After(end) {
			return false
		}
		if other.within(opens, opens.Add(w.duration)) {
			return true
		}
	}
	return true
}

// within reports whether the window is open at any time in [from, to).
func (w window) within(from, to time.Time) bool {
	if _, open := w.closes(from); open {
		return true
	}
	next := w.next(from)
	return !next.IsZero() && next.Before(to)
}
