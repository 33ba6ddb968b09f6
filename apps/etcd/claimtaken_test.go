package etcd_test

import (
	"testing"

	"github.com/governor-dev/governor/apps/etcd"
)

// A learner whose claim another created never starts on it, and another number follows.
func TestLearnerWithTakenClaimIsReplaced(t *testing.T) {
	s := etcd.Planner{}.Next(wanted(4), serving(3).with("e-3", claimTaken).World, noon).Step
	if s.Name != etcd.RemoveMember || s.Target != "e-3" || s.Args[etcd.ArgRetention] != "" {
		t.Errorf("%s, retention %q", s, s.Args[etcd.ArgRetention])
	}
}
