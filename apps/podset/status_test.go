package podset_test

import (
	"fmt"
	"testing"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
)

// TestStatusIsBounded: the API server limits the size of an object, and a set may have 5000 pods.
func TestStatusIsBounded(t *testing.T) {
	want, seen := &appv1.PodSet{}, podset.World{}
	want.Spec.Replicas = 5000
	for i := range 5000 {
		seen.Pods = append(seen.Pods, podset.Pod{Name: fmt.Sprintf("web-%04d", i), Owned: true, Matches: true})
	}
	podset.Planner{}.Status(want, seen)
	if s := want.Status; len(s.PodNames) != 500 || s.PodNames[499] != "web-0499" || s.Replicas != 5000 || s.Ready != "0/5000" {
		t.Errorf("%d names of %d pods, ready %s", len(s.PodNames), s.Replicas, s.Ready)
	}
}
