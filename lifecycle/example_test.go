package lifecycle_test

import (
	"fmt"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// pool is a world with a number of members, some of them dead.
type pool struct{ alive, dead int }

func deadMember(seen pool) lifecycle.Decision {
	if seen.dead == 0 {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: "Replace", Target: "member", Class: lifecycle.ClassDisruptive, Intent: lifecycle.IntentRepair,
		Reason: "MemberDead", Message: "A member is dead and is replaced.",
	})
}

func tooFewMembers(want int, seen pool) lifecycle.Decision {
	if seen.alive >= want {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: "Add", Target: "member", Class: lifecycle.ClassRoutine,
		Reason: "TooFewMembers", Message: fmt.Sprintf("%d of %d members exist.", seen.alive, want),
	})
}

func next(want int, seen pool, _ time.Time) lifecycle.Decision {
	return lifecycle.First(
		deadMember(seen), // repair before any wish
		tooFewMembers(want, seen),
	)
}

// A rule book of two rules, asked in three worlds.
func Example() {
	for _, seen := range []pool{{alive: 2, dead: 1}, {alive: 2}, {alive: 3}} {
		fmt.Println(next(3, seen, time.Unix(0, 0)))
	}
	// Output:
	// Proceed Replace member (MemberDead): A member is dead and is replaced.
	// Proceed Add member (TooFewMembers): 2 of 3 members exist.
	// Settled AsDeclared: Everything is as declared.
}
