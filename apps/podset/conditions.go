package podset

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Conditions returns Available (enough pods are available) and Degraded (not all are).
func (Planner) Conditions(want *appv1.PodSet, seen World, d lifecycle.Decision) []lifecycle.Condition {
	available, wanted := seen.available(), int(want.Spec.Replicas)
	message := fmt.Sprintf("%d of %d pods are available.", available, wanted)
	condition := func(kind string, is, well bool, reason string) lifecycle.Condition {
		if !well {
			reason = d.Reason
		}
		return lifecycle.Condition{Type: kind, Status: lifecycle.StatusOf(is), Reason: reason, Message: message}
	}
	enough, whole := available >= minAvailable(want), available >= wanted
	return []lifecycle.Condition{
		condition("Available", enough, enough, "EnoughAvailable"),
		condition("Degraded", !whole, whole, "AllAvailable"),
	}
}

// maxPodNames bounds the names in the status, whose size the API server limits.
const maxPodNames = 500

// Status sets the counts and the names.
func (Planner) Status(want *appv1.PodSet, seen World) {
	s := &want.Status
	s.PodNames, s.Replicas = nil, int32(seen.active())
	for i := range seen.Pods {
		if p := &seen.Pods[i]; p.Active() {
			s.PodNames = append(s.PodNames, p.Name)
		}
	}
	slices.Sort(s.PodNames)
	s.PodNames = s.PodNames[:min(len(s.PodNames), maxPodNames)]
	s.AvailableReplicas = int32(seen.available())
	s.Ready = fmt.Sprintf("%d/%d", s.AvailableReplicas, want.Spec.Replicas)
	s.UpdatedReplicas = s.Replicas - int32(seen.count(otherThan(Fingerprint(want))))
	s.Selector = labels.SelectorFromSet(Selector(want.Name)).String()
}

// Impact is one of the [Abilities].
func (Planner) Impact(_ *appv1.PodSet, during World) string {
	return fmt.Sprintf("%s of %d are available", podCount(during.available()), during.active())
}
