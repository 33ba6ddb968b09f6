package etcd_test

import (
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// Users can edit the version on a claim. A member whose StatefulSet was deleted starts with the version
// that it ran: a newer one is a change, which policies and gates judge as a Restart.
func TestVersionOnTheClaimUpgradesNoMember(t *testing.T) {
	gone := func(v string) func(*etcd.Member) {
		return func(m *etcd.Member) { m.Set, m.Pod, m.Version, m.Volume.Version = etcd.Set{}, etcd.Pod{}, "", v }
	}
	known := func() *etcdv1.EtcdCluster { return told(wanted(3), serving(3)) }
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		starts string
	}{
		"Listed":   {"the status has its version", known(), serving(3).with("e-1", gone("3.7.3")), etcd.Newest},
		"NoQuorum": {"also without a quorum", known(), serving(3).silent().with("e-1", gone("3.7.3")), etcd.Newest},
		"Older":    {"an older version is no better", known(), serving(3).with("e-1", gone("3.5.35")), etcd.Newest},
		"Unknown":  {"no member ran a version as new", wanted(3), serving(3).with("e-1", gone("3.7.3")), etcd.Newest},
		"Pending":  {"nor is the first of three upgraded by it", upgrading(known()), serving(3).silent().with("e-1", gone("3.7.3")), etcd.Newest},
		"Beyond":   {"nor beyond the declared version", told(wanted(1), serving(1).renamed()), serving(1).renamed().silent().with("e-1", gone("3.7.3")), etcd.Newest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.want, c.seen.World, noon)
			if got := d.Step.Args[etcd.ArgVersion]; d.Step.Target != "e-1" || d.Step.Name != etcd.StartMember || got != c.starts {
				t.Errorf("%s: %s with %q, want %q", c.reason, d.Step, got, c.starts)
			}
		})
	}
}

func upgrading(c *etcdv1.EtcdCluster) *etcdv1.EtcdCluster {
	c.Spec.Version = "3.7.3"
	return c
}

// renamed has e-1 as the only member.
func (s scene) renamed() scene {
	one := scene{etcd.World{Listed: true, ClusterID: 0xc1}}
	return one.with("e-1", func(m *etcd.Member) { *m = whole(1, etcd.Newest); m.Leads = true })
}

// The restart of the last old member may have been interrupted: its data may be of the version on the
// claim, and no older etcd reads it. The start is a change, which policies judge. No gate holds it for the quorum
// that only it brings back.
func TestInterruptedUpgradeOfTheLastMemberIsJudged(t *testing.T) {
	one := serving(1).renamed()
	want := upgrading(told(wanted(1), one))
	seen := one.silent().with("e-1", func(m *etcd.Member) { m.Set, m.Pod, m.Volume.Version = etcd.Set{}, etcd.Pod{}, "3.7.3" })
	s := etcd.Planner{}.Next(want, seen.World, noon).Step
	if s.Name != etcd.StartMember || s.Args[etcd.ArgVersion] != "3.7.3" || s.Intent != lifecycle.IntentChange || s.Class != lifecycle.ClassDisruptive {
		t.Errorf("%s with %s, intent %s, class %s", s, s.Args[etcd.ArgVersion], s.Intent, s.Class)
	}
	during, _ := etcd.Planner{}.Effect(want, seen.World, s)
	if held := lifecycle.Judge(etcd.Gates(), want, seen.World, during, s); len(held) > 0 {
		t.Errorf("held: %v", held)
	}
}
