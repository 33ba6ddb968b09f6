// Package pod summarizes the status of a pod.
package pod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// State is the part of a pod's status that matters to an operator.
type State struct {
	// Ready is the pod's Ready condition.
	Ready bool
	// Terminating reports whether the pod is being deleted.
	Terminating bool
	// Finished reports whether the pod has finished for good: it succeeded, failed or was
	// evicted.
	Finished bool
	// Problem is the reason why the pod is not ready, if Kubernetes reports one.
	Problem lifecycle.PodProblem
	// Detail is Kubernetes' message for Trouble, without the parts that change between
	// retries.
	Detail string
	// Since is the time of the present state: ready, not ready, or unschedulable.
	Since time.Time
	// TerminationMessage is the message of the container's last termination, until the
	// container runs again.
	TerminationMessage string
	// LastTerminationMessage is the message of the container's last termination, also while the container
	// runs again.
	LastTerminationMessage string
}

// Of returns the state of the pod and of its main container.
func Of(p *corev1.Pod, container string) State {
	s := State{
		Terminating: p.DeletionTimestamp != nil, Since: p.CreationTimestamp.Time,
		Finished: p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded,
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			s.Ready, s.Since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			s.Problem, s.Detail, s.Since = lifecycle.PodProblemUnschedulable, strings.TrimSuffix(c.Message, "."), c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == container && !s.Ready {
			s.addContainer(c)
		}
	}
	return s
}

// addContainer adds the container's problem. Kubernetes alternates between pulling and
// backing off; both give the same text, so that the status does not flap.
func (s *State) addContainer(c corev1.ContainerStatus) {
	last := c.LastTerminationState.Terminated
	if c.State.Terminated != nil {
		last = c.State.Terminated
	}
	if last != nil {
		s.LastTerminationMessage = last.Message
	}
	if last != nil && c.State.Running == nil {
		s.TerminationMessage = last.Message
	}
	waiting := c.State.Waiting
	switch {
	case waiting != nil && pullFailed(waiting.Reason):
		s.Problem, s.Detail = lifecycle.PodProblemImagePullBackOff, pullDetail(c.Image, waiting.Message)
	case waiting != nil && cannotStart(waiting.Reason):
		s.Problem, s.Detail = lifecycle.PodProblemContainerCannotStart, fmt.Sprintf("%s: %s", waiting.Reason, firstLine(waiting.Message))
	case last != nil && c.RestartCount > 1:
		s.Problem = lifecycle.PodProblemCrashLoopBackOff
		s.Detail = fmt.Sprintf("%s exits repeatedly (%s, exit code %d)", c.Name, last.Reason, last.ExitCode)
	}
}

func pullFailed(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
		return true
	}
	return false
}

func cannotStart(reason string) bool {
	switch reason {
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return true
	}
	return false
}

// pullDetail names the image and, where its message is stable, the registry's answer.
func pullDetail(image, message string) string {
	detail := fmt.Sprintf("image %q cannot be pulled", image)
	if strings.Contains(message, "not found") {
		return detail + ", the registry does not have it"
	}
	if strings.Contains(message, "nauthorized") || strings.Contains(message, "denied") {
		return detail + ", the registry refuses access"
	}
	return detail
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, ".")
}
