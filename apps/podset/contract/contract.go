// Package contract is the behavior of any pod set under the planner. The same suite runs
// on the in-memory model and on a real API server, so the model stays faithful.
package contract

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Set is the name of the set under test.
const Set = "web"

// System is a namespace with a pod set under an operator, in the model or in a cluster.
// Its pods become ready by themselves.
type System interface {
	// Apply edits the spec of the set.
	Apply(t *testing.T, edit func(*appv1.PodSetSpec))

	// Settles waits until the object reports the outcome and reason, and returns it. It
	// fails the test on a timeout.
	Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *appv1.PodSet

	// Tells returns the present object.
	Tells(t *testing.T) *appv1.PodSet

	// Until waits until holds returns nil. It fails the test on a timeout.
	Until(t *testing.T, what string, holds func() error)

	// Owners reports for each pod of the namespace that is not being deleted whether the
	// set controls it.
	Owners(t *testing.T) map[string]bool

	// Put creates a pod without a controller, with the set's labels or without labels.
	Put(t *testing.T, name string, matching bool)

	// Hand gives the pod the labels of another set. Strip removes its labels.
	Hand(t *testing.T, name string)
	Strip(t *testing.T, name string)

	// End makes the pod finish for good. Lose removes it immediately.
	End(t *testing.T, name string)
	Lose(t *testing.T, name string)
}

// Run runs the suite. Each test gets its own system.
func Run(t *testing.T, fresh func(t *testing.T) System) {
	t.Helper()
	suite := map[string]func(*testing.T, System){
		"ScalesToAnySize": scales, "ReplacesLostPod": replacesLost, "ReplacesFinishedPod": replacesFinished,
		"AdoptsMatchingPod": adopts, "DeletesExcessAdoptedPod": adoptsTooMany,
		"ReleasesPodWithOtherSetsLabels": releasesRelabeled, "ReleasesPodWithoutLabels": releasesUnlabeled,
		"ReleasesAdoptedPodWithoutLabels": releasesAdopted, "SkipsNamesOfForeignPods": skipsForeignNames, "ReplacesPodsOfOldTemplate": replacesOutdated,
	}
	for _, name := range slices.Sorted(maps.Keys(suite)) {
		t.Run(name, func(t *testing.T) { suite[name](t, fresh(t)) })
	}
}

// settleAt sets the size and waits until the set has settled with that size.
func settleAt(t *testing.T, s System, size int32) {
	t.Helper()
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = size })
	settled(t, s, size)
}

// settled waits until the set has settled, and its status and its pods agree on the size.
func settled(t *testing.T, s System, size int32) (p *appv1.PodSet) {
	t.Helper()
	reason := "AllAvailable"
	if size == 0 {
		reason = "ScaledToZero"
	}
	s.Until(t, fmt.Sprintf("the set has %d pods", size), func() error {
		p = s.Settles(t, lifecycle.OutcomeSettled, reason)
		st := p.Status
		if st.Replicas != size || st.AvailableReplicas != size || st.UpdatedReplicas != size || len(st.PodNames) != int(size) {
			return fmt.Errorf("the status says %d pods, %d available, %d updated: %v", st.Replicas, st.AvailableReplicas, st.UpdatedReplicas, st.PodNames)
		}
		if got := owned(t, s); !slices.Equal(got, st.PodNames) {
			return fmt.Errorf("the set owns %v and reports %v", got, st.PodNames)
		}
		return nil
	})
	return p
}

func owned(t *testing.T, s System) []string {
	var names []string
	for name, is := range s.Owners(t) {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// settlesWith waits until the set has settled with exactly these pods.
func settlesWith(t *testing.T, s System, want ...string) {
	t.Helper()
	s.Until(t, fmt.Sprintf("the pods are %v", want), func() error {
		if got := settled(t, s, int32(len(want))).Status.PodNames; !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

func scales(t *testing.T, s System) {
	for _, size := range []int32{1, 5, 0, 3, 2} {
		settleAt(t, s, size)
	}
}

// replacesLost pauses the set, so that the test sees the loss before the replacement.
func replacesLost(t *testing.T, s System) {
	settleAt(t, s, 3)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Paused = true })
	s.Lose(t, Set+"-1")
	s.Until(t, "the status shows the loss", func() error {
		if n := s.Tells(t).Status.Replicas; n != 2 {
			return fmt.Errorf("the status says %d pods", n)
		}
		return nil
	})
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Paused = false })
	settlesWith(t, s, Set+"-0", Set+"-1", Set+"-2")
}

func replacesFinished(t *testing.T, s System) {
	settleAt(t, s, 2)
	s.End(t, Set+"-0")
	settlesWith(t, s, Set+"-1", Set+"-2")
	if _, is := s.Owners(t)[Set+"-0"]; is {
		t.Error("the finished pod still exists")
	}
}

func adopts(t *testing.T, s System) {
	s.Put(t, "found", true)
	settleAt(t, s, 2)
	settlesWith(t, s, "found", Set+"-0")
}

func adoptsTooMany(t *testing.T, s System) {
	settleAt(t, s, 2)
	s.Put(t, "one-more", true)
	s.Until(t, "the excess pod is deleted", func() error {
		if all := s.Owners(t); len(all) != 2 {
			return fmt.Errorf("the pods are %v", all)
		}
		return nil
	})
	settled(t, s, 2)
}

// checkReleased checks that the pod exists and that the set does not control it.
func checkReleased(t *testing.T, s System, name string) {
	t.Helper()
	if is, exists := s.Owners(t)[name]; !exists || is {
		t.Errorf("pod %s: exists %v, owned %v; want it released and running", name, exists, is)
	}
}

func releasesRelabeled(t *testing.T, s System) {
	settleAt(t, s, 2)
	s.Hand(t, Set+"-0")
	settlesWith(t, s, Set+"-1", Set+"-2")
	checkReleased(t, s, Set+"-0")
}

func releasesUnlabeled(t *testing.T, s System) {
	settleAt(t, s, 2)
	s.Strip(t, Set+"-1")
	settlesWith(t, s, Set+"-0", Set+"-2")
	checkReleased(t, s, Set+"-1")
}

func releasesAdopted(t *testing.T, s System) {
	s.Put(t, "found", true)
	settleAt(t, s, 1)
	s.Strip(t, "found")
	settlesWith(t, s, Set+"-0")
	checkReleased(t, s, "found")
}

func skipsForeignNames(t *testing.T, s System) {
	s.Put(t, Set+"-0", false)
	s.Put(t, Set+"-2", false)
	settleAt(t, s, 3)
	settlesWith(t, s, Set+"-1", Set+"-3", Set+"-4")
	checkReleased(t, s, Set+"-0")
	checkReleased(t, s, Set+"-2")
}

func replacesOutdated(t *testing.T, s System) {
	settleAt(t, s, 4)
	s.Put(t, "found", true)
	settleAt(t, s, 5)
	s.Apply(t, func(spec *appv1.PodSetSpec) {
		spec.Template.Metadata.Annotations = map[string]string{"example.com/changed": "yes"}
	})
	s.Until(t, "the pods are replaced", func() error {
		if _, is := s.Owners(t)["found"]; is {
			return errors.New("the adopted pod still exists")
		}
		return nil
	})
	settled(t, s, 5)
}
