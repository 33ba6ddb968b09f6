// Package contract is the behavior of any memcached under the planner. The same suite runs
// on the in-memory model and on a real cluster, so the model stays faithful.
package contract

import (
	"maps"
	"slices"
	"testing"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// System is an instance under an operator, in the model or in a cluster.
type System interface {
	// Apply edits the spec of the instance.
	Apply(t *testing.T, edit func(*cachev1.MemcachedSpec))

	// Settles waits until the object reports the outcome and reason, and returns it. It
	// fails the test on a timeout.
	Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *cachev1.Memcached

	// LosePod deletes the pod immediately, as after a node failure.
	LosePod(t *testing.T, name string)
}

// Missing is an image that no registry has.
const Missing = "docker.io/library/memcached:0.0.0-no-such-release"

// Run runs the suite. Each test gets its own system.
func Run(t *testing.T, fresh func(t *testing.T) System) {
	t.Helper()
	suite := map[string]func(*testing.T, System){
		"BecomesReady": becomesReady, "ScalesToAnySize": scales,
		"ReplacesLostPod": replaces, "ReportsMissingImage": missingImage,
	}
	for _, name := range slices.Sorted(maps.Keys(suite)) {
		t.Run(name, func(t *testing.T) { suite[name](t, fresh(t)) })
	}
}

func becomesReady(t *testing.T, s System) {
	s.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	m := s.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	if m.Status.ReadyReplicas != 2 || len(m.Status.Nodes) != 2 {
		t.Errorf("%d servers answer, nodes are %v", m.Status.ReadyReplicas, m.Status.Nodes)
	}
}

func scales(t *testing.T, s System) {
	for _, size := range []int32{1, 3, 0, 2} {
		s.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = size })
		reason := "AllAnswer"
		if size == 0 {
			reason = "ScaledToZero"
		}
		if m := s.Settles(t, lifecycle.OutcomeSettled, reason); m.Status.Replicas != size {
			t.Errorf("%d pods, want %d", m.Status.Replicas, size)
		}
	}
}

func replaces(t *testing.T, s System) {
	s.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	lost := s.Settles(t, lifecycle.OutcomeSettled, "AllAnswer").Status.Nodes[0]
	s.LosePod(t, lost)
	s.Settles(t, lifecycle.OutcomeWait, "RollingOut")
	if m := s.Settles(t, lifecycle.OutcomeSettled, "AllAnswer"); m.Status.Nodes[0] == lost {
		t.Errorf("the lost pod %s is still in the status", lost)
	}
}

// missingImage expects the old servers to keep serving while the new image cannot be
// pulled.
func missingImage(t *testing.T, s System) {
	s.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	s.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Image = Missing })
	if m := s.Settles(t, lifecycle.OutcomeBlocked, "ImagePullBackOff"); m.Status.ReadyReplicas < 2 {
		t.Errorf("only %d servers answer while the new image is missing, want 2", m.Status.ReadyReplicas)
	}
	s.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Image = "" })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
}
