package podset_test

import (
	"fmt"
	"slices"
	"testing"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
)

// TestStatusIsBounded: the API server limits the size of an object, and a set may have 5000 pods. An
// adopted pod keeps its place: after it has lost its label, only its name finds it.
func TestStatusIsBounded(t *testing.T) {
	want, seen := &appv1.PodSet{}, podset.World{Pods: []podset.Pod{{Name: "zz-1", Owned: true, Matches: true}}}
	want.Name, want.Spec.Replicas = "web", 5000
	for i := range 4999 {
		seen.Pods = append(seen.Pods, podset.Pod{Name: fmt.Sprintf("web-%d", i), Owned: true, Matches: true})
	}
	podset.Planner{}.Status(want, seen)
	s := want.Status
	if len(s.PodNames) != 500 || s.PodNames[0] != "web-0" || s.PodNames[499] != "zz-1" || !slices.IsSorted(s.PodNames) {
		t.Errorf("%d names from %s to %s", len(s.PodNames), s.PodNames[0], s.PodNames[len(s.PodNames)-1])
	}
	if s.Replicas != 5000 || s.Ready != "0/5000" {
		t.Errorf("%d pods, ready %s", s.Replicas, s.Ready)
	}
}
