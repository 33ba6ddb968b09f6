package memcached_test

import (
	"fmt"
	"testing"

	"github.com/governor-dev/governor/apps/memcached"
)

// TestStatusIsBounded: a rolling update of 500 servers has more pods, and the API server refuses a
// status with more names than its schema allows.
func TestStatusIsBounded(t *testing.T) {
	want, seen := instance(500), memcached.World{}
	for i := range 625 {
		seen.Pods = append(seen.Pods, memcached.Pod{Name: fmt.Sprintf("m-%03d", i)})
	}
	memcached.Planner{}.Status(want, seen)
	if s := want.Status; len(s.Nodes) != 500 || s.Nodes[0] != "m-000" || s.Replicas != 625 {
		t.Errorf("%d names from %q on, %d pods", len(s.Nodes), s.Nodes[0], s.Replicas)
	}
}

// TestVersionIsTheTagOfTheImage: the column VERSION names what the servers run.
func TestVersionIsTheTagOfTheImage(t *testing.T) {
	for image, version := range map[string]string{
		"": "1.6.18", "memcached:1.6.38": "1.6.38", "example.com:5000/memcached": "", "memcached:1.6.38@sha256:ab": "1.6.38", "memcached@sha256:ab": "",
	} {
		want := instance(1)
		want.Spec.Image = image
		memcached.Planner{}.Status(want, memcached.World{})
		if got := want.Status.Version; got != version {
			t.Errorf("the image %q has the version %q, want %q", image, got, version)
		}
	}
}
