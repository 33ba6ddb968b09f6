package driver

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/apps/memcached"
)

// pod reduces a pod to what matters to memcached.
func pod(p *corev1.Pod) memcached.Pod {
	seen := memcached.Pod{Name: p.Name, Leaving: p.DeletionTimestamp != nil}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			seen.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable:
			seen.Trouble, seen.Detail = memcached.Unschedulable, strings.TrimSuffix(c.Message, ".")
			seen.Since = c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == memcached.Name && !seen.Ready {
			contain(&seen, c)
		}
	}
	return seen
}

// contain adds the container's trouble. Kubernetes alternates between trying and
// backing off; both are told in the same words, or the status would flap.
func contain(seen *memcached.Pod, c corev1.ContainerStatus) {
	waiting := c.State.Waiting
	switch {
	case waiting != nil && pullFailed(waiting.Reason):
		seen.Trouble, seen.Detail = memcached.ImageUnpullable, pullDetail(c.Image, waiting.Message)
	case waiting != nil && cannotStart(waiting.Reason):
		seen.Trouble, seen.Detail = memcached.BadContainer, fmt.Sprintf("%s: %s", waiting.Reason, firstLine(waiting.Message))
	case c.LastTerminationState.Terminated != nil && c.RestartCount > 1:
		t := c.LastTerminationState.Terminated
		seen.Trouble = memcached.CrashLooping
		seen.Detail = fmt.Sprintf("memcached ends again and again (%s, exit code %d)", t.Reason, t.ExitCode)
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
