package plannertest

import (
	"strings"

	"github.com/governor-dev/governor/lifecycle/preview"
)

// Preview returns the plan for the object in the world, one line for each step and one for the end. Waits are in brackets,
// and the application's impact follows a colon:
//
//	Restart e-1: 2 of 3 voters serve, none may fail
//	(Serving e-1)
//	Settled AsDeclared
func (s Subject[T, W]) Preview(want T, seen W) string {
	plan, _, _ := preview.Simulator[T, W]{Planner: s.Planner, Gates: s.Gates, Impact: s.Impact}.Unroll(want, seen, s.now())
	var lines []string
	for _, step := range plan.Steps {
		line := step.String()
		if step.Impact != "" {
			line += ": " + step.Impact
		}
		if step.IsWait {
			line = "(" + line + ")"
		}
		if len(step.Held) > 0 {
			line += " held by " + step.Held[0].Gate
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, string(plan.Outcome)+" "+plan.Reason), "\n")
}
