package podset

import (
	"fmt"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Gates returns the gates of every set.
func Gates() []lifecycle.Gate[*appv1.PodSet, World] {
	return []lifecycle.Gate[*appv1.PodSet, World]{KeepsAvailable}
}

// KeepsAvailable holds a step that makes more pods unavailable at a time than spec.maxUnavailable
// allows.
var KeepsAvailable = lifecycle.Gate[*appv1.PodSet, World]{
	Name:      "KeepsAvailable",
	Violation: func(want *appv1.PodSet, w World) int { return max(0, minAvailable(want)-w.available()) },
	Message: func(want *appv1.PodSet, _, during World, _ lifecycle.Step) string {
		return fmt.Sprintf("only %d pods would be available and at least %d must be; the step continues when other pods are ready",
			during.available(), minAvailable(want))
	},
}
