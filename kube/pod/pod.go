// Package pod summarizes the status of a pod.
package pod

import (
	"cmp"
	"fmt"
	"slices"
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
	// Container is the name of the container that has the problem, if it is not a main one: it
	// tells nothing of the application.
	Container string
	// Running reports that a main container runs.
	Running bool
	// Since is the time of the present state: ready, not ready, or unschedulable.
	Since time.Time
	// TerminationMessage is the message of the container's last termination, until the
	// container runs again.
	TerminationMessage string
	// LastTerminationMessage is the message of the container's last termination, also while the container
	// runs again.
	LastTerminationMessage string
}

// Of returns the state of the pod and of its main containers. A problem of another container counts
// if the main ones have none.
func Of(p *corev1.Pod, containers ...string) State {
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
		if c.Type == corev1.PodScheduled && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulingGated) {
			s.Problem, s.Detail, s.Since = lifecycle.PodProblemUnschedulable, strings.TrimSuffix(c.Message, "."), c.LastTransitionTime.Time
		}
	}
	if !s.Ready {
		s.addContainers(p, containers)
	}
	return s
}

// addContainers adds the first problem of the main containers, otherwise that of another one.
func (s *State) addContainers(p *corev1.Pod, containers []string) {
	all := statuses(p)
	for _, c := range all {
		if !slices.Contains(containers, c.Name) {
			continue
		}
		s.Running = s.Running || c.State.Running != nil
		if s.Problem == lifecycle.PodProblemNone {
			s.addContainer(c)
		}
	}
	for _, c := range p.Status.InitContainerStatuses {
		s.addOther("init container", c)
	}
	for _, c := range all {
		if !slices.Contains(containers, c.Name) {
			s.addOther("container", c)
		}
	}
}

// statuses returns the containers' statuses with the images of the spec: after an edit of the pod the
// kubelet goes on reporting the image that ran before.
func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	all := slices.Clone(p.Status.ContainerStatuses)
	for i := range all {
		all[i].Image = cmp.Or(image(p.Spec, all[i].Name), all[i].Image)
	}
	return all
}

// ImageEdited reports that the container has run, and now has an image that is not the template's and
// cannot be pulled: a user edited the pod. A pod that an admission webhook gave an image that
// cannot be pulled has never run.
func ImageEdited(p *corev1.Pod, template corev1.PodSpec, container string) bool {
	if image(p.Spec, container) == image(template, container) {
		return false
	}
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == container && c.State.Waiting != nil && pullFailed(c.State.Waiting.Reason) && c.LastTerminationState.Terminated != nil
	})
}

func image(spec corev1.PodSpec, container string) string {
	for _, c := range spec.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
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
	s.addWaiting(c)
	if s.Problem == lifecycle.PodProblemNone && last != nil && c.RestartCount > 1 {
		s.Problem, s.Detail = lifecycle.PodProblemCrashLoopBackOff, exitsRepeatedly(c, last)
	}
}

// addOther adds the problem of another container: an init container keeps the main one from
// starting, a sidecar keeps the pod from being ready. It is no crash loop: nothing is known about
// the application's data. An init container that has completed is ready.
func (s *State) addOther(kind string, c corev1.ContainerStatus) {
	if s.Problem != lifecycle.PodProblemNone || c.Ready {
		return
	}
	s.addWaiting(c)
	last := c.LastTerminationState.Terminated
	if s.Problem == lifecycle.PodProblemNone && last != nil && last.ExitCode != 0 && c.RestartCount > 1 {
		s.Problem, s.Detail = lifecycle.PodProblemContainerCannotStart, exitsRepeatedly(c, last)
	}
	if s.Problem != lifecycle.PodProblemNone {
		s.Container, s.Detail = c.Name, fmt.Sprintf("%s %s: %s", kind, c.Name, s.Detail)
	}
}

// addWaiting adds why the container waits, if that is a problem.
func (s *State) addWaiting(c corev1.ContainerStatus) {
	waiting := c.State.Waiting
	switch {
	case waiting != nil && pullFailed(waiting.Reason):
		s.Problem, s.Detail = lifecycle.PodProblemImagePullBackOff, pullDetail(c.Image, waiting.Message)
	case waiting != nil && cannotStart(waiting.Reason):
		s.Problem, s.Detail = lifecycle.PodProblemContainerCannotStart, fmt.Sprintf("%s: %s", waiting.Reason, firstLine(waiting.Message))
	}
}

func exitsRepeatedly(c corev1.ContainerStatus, last *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("%s exits repeatedly (%s, exit code %d)", c.Name, last.Reason, last.ExitCode)
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
