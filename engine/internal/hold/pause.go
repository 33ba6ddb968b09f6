package hold

import (
	"fmt"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// IsPaused reports whether the object itself or a policy asks to keep the hands off.
func (j *Judge[T, W]) IsPaused(obj T) bool {
	return j.asksForPause(obj) || j.Policies.Effective(obj).Paused()
}

func (j *Judge[T, W]) asksForPause(obj T) bool {
	own := j.Abilities.IsPaused
	return own != nil && own(obj) || obj.GetAnnotations()[lifecycle.AnnotationPaused] == "true"
}

// WhyPaused says who pauses the object, and what resumes it.
func (j *Judge[T, W]) WhyPaused(obj T) string {
	by := j.Policies.Effective(obj).PausedBy
	var ways []string
	if len(by) > 0 {
		ways = append(ways, fmt.Sprintf("spec.paused of %s", policy.Said(by)))
	}
	if j.asksForPause(obj) {
		ways = append(ways, "spec.paused or the annotation "+lifecycle.AnnotationPaused)
	}
	return "The operator observes only. Remove " + strings.Join(ways, ", and ") + " to resume."
}
