package etcd_test

import (
	"testing"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// unseen are members that start a cluster, which the operator cannot reach, e.g. because of a NetworkPolicy.
func unseen() scene {
	s := scene{}
	for i := range 3 {
		s = s.with(whole(i, etcd.Newest).Name, func(m *etcd.Member) {
			*m = whole(i, etcd.Newest)
			m.ID, m.Role, m.Joined, m.PeerURL, m.Leads, m.Health, m.Version, m.Index = 0, etcd.Outside, false, "", false, etcd.Unknown, "", 0
			m.Bootstrap = etcd.BootstrapCluster
		})
	}
	return s
}

func notReady(m *etcd.Member) { m.Pod.Ready = false }

func volumeGone(m *etcd.Member) {
	trouble(lifecycle.PodProblemUnschedulable, time.Minute)(m)
	m.Volume = etcd.Volume{}
}

// TestNoMemberReturnsEmptyWhileTheOperatorSeesNothing: ready pods have answered a read that needs a quorum. The cluster has
// formed and may have data, so no member starts again without data under its identity, also after an outage.
func TestNoMemberReturnsEmptyWhileTheOperatorSeesNothing(t *testing.T) {
	cases := map[string]struct {
		told *etcdv1.EtcdCluster
		seen scene
		want bool
	}{
		"Ready":  {wanted(3), unseen().with("e-1", volumeGone), false},
		"Later":  {told(wanted(3), unseen()), unseen().with("e-1", volumeGone).with("e-0", notReady).with("e-2", notReady), false},
		"Before": {wanted(3), unseen().with("e-1", volumeGone).with("e-0", notReady).with("e-2", notReady), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.told, c.seen.World, noon)
			if got := d.Step.Name == etcd.FormCluster; got != c.want {
				t.Errorf("an empty volume under the same identity: %t: %s", got, d)
			}
		})
	}
}
