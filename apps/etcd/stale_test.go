package etcd_test

import (
	"testing"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// TestARecoveredMemberStays: a fresh observation before the removal shows that the member answers again.
func TestARecoveredMemberStays(t *testing.T) {
	dead := serving(3).with("e-1", down(time.Hour))
	cases := map[string]struct {
		reason string
		fresh  scene
		moved  bool
	}{
		"Dead":    {"nothing has changed", dead, false},
		"Serves":  {"it serves", serving(3), true},
		"Answers": {"its probe lags", serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Ready = false }), true},
		"Fails":   {"it answers that it cannot read", serving(3).with("e-1", func(m *etcd.Member) { m.Health = etcd.Unhealthy }), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := etcd.Moved(dead.World, c.fresh.World, lifecycle.Step{Name: etcd.RemoveMember, Target: "e-1"})
			if (err != nil) != c.moved {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}
