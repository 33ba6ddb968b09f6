package contract

import (
	"fmt"
	"testing"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// corruptMember: the alarm CORRUPT of a member is reported, and only that member leaves the client
// Service. Once a user deletes its volume, Governor replaces it and disarms the alarm.
func corruptMember(t *testing.T, s System) {
	before := forms(t, s, 3)
	bad := follower(t, before)
	s.RaiseCorrupt(t, bad)
	s.Settles(t, lifecycle.OutcomeBlocked, "AlarmRaised")
	s.Await(t, "clients do not read from the corrupt member", func() error { return onlyHidden(s.Observe(t), bad) })
	s.LoseVolumes(t, bad)
	replaced(t, before, rests(t, s), bad)
	if left := s.Observe(t).LeftAlarms; len(left) > 0 {
		t.Errorf("alarms are left: %v", left)
	}
}

func onlyHidden(seen etcd.World, member string) error {
	for _, m := range seen.Members {
		want := etcd.Exposed
		if m.Name == member {
			want = etcd.Hidden
		}
		if m.Pod.Exposure != want || m.Set.Exposure != want || !m.Pod.Ready {
			return fmt.Errorf("%s is %+v", m.Name, m)
		}
	}
	return nil
}
