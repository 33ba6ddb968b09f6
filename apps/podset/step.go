package podset

import (
	"fmt"
	"strconv"
	"strings"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Step names. The world determines the pods of a step, see [PodsToDelete], [NewPods] and
// [Finished], so the plan contains only their number.
const (
	// Release removes the set's owner reference from pods that lost its labels.
	Release = "Release"
	// Adopt makes the set the owner of pods that have its labels and no controller.
	Adopt = "Adopt"
	// DeletePods deletes excess pods.
	DeletePods = "DeletePods"
	// ReplaceFinished removes finished pods, and creates others in their place.
	ReplaceFinished = "ReplaceFinished"
	// CreatePods creates missing pods.
	CreatePods = "CreatePods"
	// ReplaceOutdated deletes pods of an earlier template. CreatePods then replaces them.
	ReplaceOutdated = "ReplaceOutdated"
)

// Names of waits.
const (
	// podsReady waits until all pods are ready.
	podsReady = "PodsReady"
	// backoffOver waits until finished pods may be replaced.
	backoffOver = "PauseOver"
)

// Arguments of steps.
const (
	// argPods is the number of pods to create, or otherwise the number of pods of the
	// step.
	argPods = "pods"
	// argFinished is the number of finished pods to remove.
	argFinished = "ended"
	// argTemplate is the fingerprint of the template of new pods.
	argTemplate = "template"
)

// maxPodsPerStep is the maximum number of pods of one step, which keeps a step short.
const maxPodsPerStep = 500

// Count returns the number of pods that the step creates, or otherwise handles.
func Count(s lifecycle.Step) int { return intArg(s, argPods) }

// Removed returns the number of finished pods that the step removes.
func Removed(s lifecycle.Step) int { return intArg(s, argFinished) }

// intArg returns an argument that this package set, or 0.
func intArg(s lifecycle.Step, arg string) int {
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

// withReason completes the step with its cause, reason and message.
func withReason(s lifecycle.Step, cause lifecycle.Cause, reason, format string, args ...any) lifecycle.Step {
	s.Cause, s.Reason, s.Message = cause, reason, fmt.Sprintf(format, args...)
	if cause == lifecycle.CauseFault || cause == lifecycle.CauseDrift {
		s.Intent = lifecycle.IntentRepair
	}
	return s
}

// nameList returns the names of the first pods and the number of the others.
func nameList(pods []Pod) string {
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

// podCount returns the number with its noun.
func podCount(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
