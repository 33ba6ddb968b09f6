package podset

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Gates are the promises of every set.
func Gates() []lifecycle.Gate[World] { return []lifecycle.Gate[World]{KeepsAvailable} }

// KeepsAvailable promises that a changed template takes no more pods away at a time
// than spec.maxUnavailable allows.
var KeepsAvailable = lifecycle.Gate[World]{
	Name:      "KeepsAvailable",
	Violation: func(w World) int { return max(0, w.Least-w.available()) },
	Message: func(_, during World, _ lifecycle.Step) string {
		return fmt.Sprintf("only %d pods would be available, at least %d have to be; it goes on when others are ready",
			during.available(), during.Least)
	},
}
