package fakeapp

import (
	"fmt"
	"iter"

	"github.com/governor-dev/governor/lifecycle/plannertest"
)

// states are the states of a member between any two effects of the operator.
var states = []Member{
	{Listed: true, Voter: true, Pod: Healthy}, {Listed: true, Voter: true, Pod: Starting}, {Listed: true, Voter: true, Pod: Lost},
	{Listed: true, Voter: true}, {Listed: true, Pod: Healthy}, {Listed: true, Pod: Starting}, {Listed: true, Pod: Lost}, {Listed: true},
	{Pod: Healthy}, {Pod: Lost},
}

// SmallWorlds yields all rings of up to most members that have a quorum and at most one
// learner, each with every size up to most.
func SmallWorlds(most int) iter.Seq2[*Ring, World] {
	return func(yield func(*Ring, World) bool) {
		for members := range plannertest.Bags(most, states...) {
			seen := named(members)
			if seen.missing() > 0 || seen.count(listed)-seen.count(voter) > 1 {
				continue
			}
			for size := 1; size <= most; size++ {
				if want := (&Ring{Spec: Spec{Size: size}}); !yield(want, seen) {
					return
				}
			}
		}
	}
}

func named(members []Member) World {
	w := World{Next: len(members)}
	for i, m := range members {
		m.Name = fmt.Sprintf("m%06d", i)
		w.Members = append(w.Members, m)
	}
	return w
}
