package driver

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/kube/pod"
	"github.com/governor-dev/governor/lifecycle"
)

// matches reports whether the pod has the set's labels.
func matches(obj *appv1.PodSet, p *corev1.Pod) bool {
	return p.Labels[lifecycle.LabelApp] == podset.Name && p.Labels[lifecycle.LabelInstance] == obj.Name
}

// read converts the pod for the planner.
func read(obj *appv1.PodSet, p *corev1.Pod) podset.Pod {
	seen := podset.Pod{
		Name: p.Name, UID: p.UID, Owned: metav1.IsControlledBy(p, obj), Matches: matches(obj, p),
		Terminating: p.DeletionTimestamp != nil, Phase: phase(p.Status.Phase), Node: p.Spec.NodeName,
		Cost: cost(p.Annotations), Restarts: restarts(p), Created: p.CreationTimestamp.Time,
		Template: p.Labels[podset.LabelTemplate],
	}
	seen.Attempt, _ = strconv.Atoi(p.Annotations[podset.AnnotationAttempt])
	if seen.Phase == podset.PhaseFinished {
		seen.StartedAt, seen.FinishedAt = startedAt(p), finishedAt(p)
		return seen
	}
	state := pod.Of(p, containers(p)...)
	switch seen.Ready, seen.Problem, seen.Detail = state.Ready, state.Problem, state.Detail; {
	case seen.Ready:
		seen.ReadySince = state.Since
	case seen.Problem != lifecycle.PodProblemNone:
		seen.Since = state.Since
	}
	return seen
}

// containers returns the names of the pod's containers: to a PodSet all are equal.
func containers(p *corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	return names
}

func phase(p corev1.PodPhase) podset.Phase {
	switch p {
	case corev1.PodRunning:
		return podset.PhaseRunning
	case corev1.PodUnknown:
		return podset.PhaseUnknown
	case corev1.PodSucceeded, corev1.PodFailed:
		return podset.PhaseFinished
	}
	return podset.PhasePending
}

// cost returns the deletion cost annotation, or 0 if it is missing or invalid, as for a
// ReplicaSet.
func cost(annotations map[string]string) int32 {
	n, err := strconv.ParseInt(annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func restarts(p *corev1.Pod) int32 {
	most := int32(0)
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range statuses {
			most = max(most, c.RestartCount)
		}
	}
	return most
}

func startedAt(p *corev1.Pod) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return p.CreationTimestamp.Time
}

// finishedAt returns when the last container terminated. For a pod without containers,
// such as an evicted one, it returns when the last condition changed.
func finishedAt(p *corev1.Pod) time.Time {
	last := p.CreationTimestamp.Time
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			later(c.State.Terminated.FinishedAt.Time)
		}
	}
	for _, c := range p.Status.Conditions {
		later(c.LastTransitionTime.Time)
	}
	return last
}
