// Package pod reads what Kubernetes says about a pod.
package pod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// State is a pod reduced to what matters to who runs it.
type State struct {
	// Ready is the kubelet's word, by the readiness probe.
	Ready bool
	// Leaving says that it is being deleted.
	Leaving bool
	// Ended says that it ran, and will not again: it succeeded, failed or was evicted.
	Ended bool
	// Trouble is what hinders it, if it is not ready.
	Trouble lifecycle.PodProblem
	// Detail is the evidence in Kubernetes' own words, without what changes by itself.
	Detail string
	// Since is when it began to be as it is: ready, not ready, or looking for a node.
	Since time.Time
	// TerminationMessage is the message with which its container ended, until it runs again.
	TerminationMessage string
	// Epitaph is the message with which its container last ended, also while it runs again.
	Epitaph string
}

// Of returns the state of the pod by its main container.
func Of(p *corev1.Pod, container string) State {
	s := State{
		Leaving: p.DeletionTimestamp != nil, Since: p.CreationTimestamp.Time,
		Ended: p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded,
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			s.Ready, s.Since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			s.Trouble, s.Detail, s.Since = lifecycle.PodProblemUnschedulable, strings.TrimSuffix(c.Message, "."), c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == container && !s.Ready {
			s.contain(c)
		}
	}
	return s
}

// contain adds the container's trouble. Kubernetes alternates between trying and
// backing off; both are told in the same words, or the status would flap.
func (s *State) contain(c corev1.ContainerStatus) {
	last := c.LastTerminationState.Terminated
	if c.State.Terminated != nil {
		last = c.State.Terminated
	}
	if last != nil {
		s.Epitaph = last.Message
	}
	if last != nil && c.State.Running == nil {
		s.TerminationMessage = last.Message
	}
	waiting := c.State.Waiting
	switch {
	case waiting != nil && pullFailed(waiting.Reason):
		s.Trouble, s.Detail = lifecycle.PodProblemImagePullBackOff, pullDetail(c.Image, waiting.Message)
	case waiting != nil && cannotStart(waiting.Reason):
		s.Trouble, s.Detail = lifecycle.PodProblemContainerCannotStart, fmt.Sprintf("%s: %s", waiting.Reason, firstLine(waiting.Message))
	case last != nil && c.RestartCount > 1:
		s.Trouble = lifecycle.PodProblemCrashLoopBackOff
		s.Detail = fmt.Sprintf("%s ends again and again (%s, exit code %d)", c.Name, last.Reason, last.ExitCode)
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

// pullDetail names the image and, where it is stable, the registry's answer.
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
