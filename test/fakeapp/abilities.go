package fakeapp

import "github.com/governor-dev/governor/lifecycle"

// Abilities returns what the planner can do beyond planning.
func Abilities() lifecycle.Abilities[*Ring, World] {
	p := Planner{}
	return lifecycle.Abilities[*Ring, World]{Unknowns: p.Unknowns, Evidence: p.Evidence, DependsOn: p.DependsOn, Retain: p.Retain}
}
