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
	return lifecycle.Service{
		Available: available >= minAvailable(want), AvailableReason: "EnoughAvailable", Complete: available >= wanted, CompleteReason: "AllAvailable",
		Message: fmt.Sprintf("%d of %d pods are available.", available, wanted),
	}.Conditions(d)
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
	s.PodNames = bounded(want.Name, s.PodNames)
	s.AvailableReplicas = int32(seen.available())
	s.Ready = fmt.Sprintf("%d/%d", s.AvailableReplicas, want.Spec.Replicas)
	s.UpdatedReplicas = s.Replicas - int32(seen.count(otherThan(Fingerprint(want))))
	s.Selector = labels.SelectorFromSet(Selector(want.Name)).String()
}

// bounded returns at most maxPodNames names, sorted. Adopted pods have precedence: after one has
// lost its label, only its name in the status is left to find it by.
func bounded(set string, names []string) []string {
	slices.Sort(names)
	adopted := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return Numbered(set, n) })
	numbered := slices.DeleteFunc(names, func(n string) bool { return !Numbered(set, n) })
	kept := slices.Concat(adopted, numbered)
	kept = kept[:min(len(kept), maxPodNames)]
	slices.Sort(kept)
	return kept
}

// Impact is one of the [Abilities].
func (Planner) Impact(_ *appv1.PodSet, during World) string {
	return fmt.Sprintf("%s of %d are available", podCount(during.available()), during.active())
}
