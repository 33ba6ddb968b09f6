package etcd_test

import (
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// TestStatusListsABoundedNumberOfMembers: others can add any number of members, and the API server
// refuses a status with more than its schema allows.
func TestStatusListsABoundedNumberOfMembers(t *testing.T) {
	want := wanted(3)
	etcd.Planner{}.Status(want, serving(60).World)
	if all := want.Status.Members; len(all) != etcdv1.MaxMembers || all[0].Name != "e-0" || want.Status.Replicas != 60 {
		t.Errorf("%d members, %d replicas", len(all), want.Status.Replicas)
	}
}
