package fakeapp

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Evidence is one of the [Abilities].
func (Planner) Evidence(_ *Ring, seen World, s lifecycle.Step) []string {
	all := []string{fmt.Sprintf("%d of %d voters are healthy.", seen.count(healthyVoter), seen.count(voter))}
	if m, ok := seen.find(func(m Member) bool { return m.Name == s.Target }); ok {
		all = append(all, fmt.Sprintf("%s: listed %t, voter %t, pod %q.", m.Name, m.Listed, m.Voter, m.Pod))
	}
	return all
}
