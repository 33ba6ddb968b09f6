package podset

import (
	"fmt"
	"strconv"
	"strings"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Steps. Which pods they are about follows from the world, see [PodsToDelete], [NewPods] and
// [Finished], so only their number is in the plan.
const (
	// Release takes the set's owner reference from pods that lost its labels.
	Release = "LetGo"
	// Adopt makes the set the owner of pods that bear its labels and have none.
	Adopt = "Adopt"
	// DeletePods deletes the pods that are too many.
	DeletePods = "Shrink"
	// ReplaceFinished removes pods that have ended, and makes others in their place.
	ReplaceFinished = "Succeed"
	// CreatePods makes the pods that are too few.
	CreatePods = "Grow"
	// ReplaceOutdated deletes pods of an earlier template, for others to take their place.
	ReplaceOutdated = "Renew"
)

// What is waited for.
const (
	// podsReady: all pods are ready.
	podsReady = "PodsReady"
	// pauseOver: ended pods may be replaced.
	pauseOver = "PauseOver"
)

// Arguments of steps.
const (
	// argPods is how many pods are made, or else how many the step is about.
	argPods = "pods"
	// argEnded is how many ended pods are removed.
	argEnded = "ended"
	// argTemplate is the fingerprint of the template for pods that are made.
	argTemplate = "template"
	// argLeast is how many pods are to stay available.
	argLeast = "leastAvailable"
)

// most is how many pods one step is about at most: a step is short.
const most = 500

// Count is how many pods the step makes, or else is about.
func Count(s lifecycle.Step) int { return number(s, argPods) }

// Removed is how many ended pods the step removes.
func Removed(s lifecycle.Step) int { return number(s, argEnded) }

// number is an argument that this package gave; another is a step of nobody's.
func number(s lifecycle.Step, arg string) int {
	n, err := strconv.Atoi(s.Args[arg])
	if err != nil {
		return 0
	}
	return n
}

func step(name string, want *appv1.PodSet, n int) lifecycle.Step {
	return lifecycle.Step{
		Name: name, Target: want.Name, Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentChange, Cause: lifecycle.CauseSpecChange,
		Args: map[string]string{argPods: strconv.Itoa(n)},
	}
}

// because completes the step with why it is taken.
func because(s lifecycle.Step, cause lifecycle.Cause, reason, format string, args ...any) lifecycle.Step {
	s.Cause, s.Reason, s.Message = cause, reason, fmt.Sprintf(format, args...)
	if cause == lifecycle.CauseFault || cause == lifecycle.CauseDrift {
		s.Intent = lifecycle.IntentRepair
	}
	return s
}

// listed names a few of the pods and says how many more there are.
func listed(pods []Pod) string {
	const enough = 3
	var names []string
	for _, p := range pods[:min(len(pods), enough)] {
		names = append(names, p.Name)
	}
	all := strings.Join(names, ", ")
	if more := len(pods) - enough; more > 0 {
		all += fmt.Sprintf(" and %d more", more)
	}
	return all
}

// counted is a number with its noun.
func counted(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
