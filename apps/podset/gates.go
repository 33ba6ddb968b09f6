package podset

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Gates returns the gates of every set.
func Gates() []lifecycle.Gate[World] { return []lifecycle.Gate[World]{KeepsAvailable} }

// KeepsAvailable holds a template change that makes more pods unavailable at a time than
// spec.maxUnavailable allows.
var KeepsAvailable = lifecycle.Gate[World]{
	Name:      "KeepsAvailable",
	Violation: func(w World) int { return max(0, w.MinAvailable-w.available()) },
	Message: func(_, during World, _ lifecycle.Step) string {
		return fmt.Sprintf("only %d pods would be available and at least %d must be; the step continues when other pods are ready",
			during.available(), during.MinAvailable)
	},
}
