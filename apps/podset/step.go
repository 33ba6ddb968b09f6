package podset

import (
	"fmt"
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
	backoffOver = "BackoffOver"
)

// Args are the arguments of all steps and waits.
type Args struct {
	// Pods is the number of pods to create, or otherwise the number of pods of the step.
	Pods int `json:"pods"`
	// Finished is the number of finished pods to remove.
	Finished int `json:"finished,omitempty"`
	// Template is the fingerprint of the template of new pods.
	Template string `json:"template,omitempty"`
}

// Steps declares the steps and the waits of the planner.
func Steps() []lifecycle.StepType {
	var all []lifecycle.StepType
	for _, name := range []string{Release, Adopt, ReplaceFinished, CreatePods} {
		all = append(all, lifecycle.StepType{Name: name, Class: lifecycle.ClassRoutine, Args: Args{}})
	}
	return append(all,
		lifecycle.StepType{Name: DeletePods, Class: lifecycle.ClassDisruptive, Args: Args{}}, // when it deletes all
		lifecycle.StepType{Name: ReplaceOutdated, Class: lifecycle.ClassDisruptive, Args: Args{}},
		lifecycle.StepType{Name: podsReady, Wait: true, Args: Args{}},
		lifecycle.StepType{Name: backoffOver, Wait: true, Args: Args{}},
	)
}

// maxPodsPerStep is the maximum number of pods of one step, which keeps a step short.
const maxPodsPerStep = 500

func step(name string, want *appv1.PodSet, args Args) lifecycle.Step {
	return lifecycle.Step{
		Name: name, Target: want.Name, Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentChange, Cause: lifecycle.CauseSpecChange,
	}.WithArgs(args)
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
