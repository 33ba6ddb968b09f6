package etcd_test

import (
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// While etcd's authentication denies the operator, serving members count, repairs that need only
// Kubernetes continue, and the message explains how to grant the operator its rights.
func TestAuthEnabled(t *testing.T) {
	refusing := func(s scene) scene { s.Unauthorized, s.User = true, "client"; return s }
	mute := func(s scene) scene { // etcd denies the member list, too
		for _, m := range s.Members {
			s = s.with(m.Name, func(m *etcd.Member) {
				m.ID, m.Role, m.Joined, m.PeerURL, m.Leads, m.Index, m.Version = 0, etcd.Outside, false, "", false, 0, ""
			})
		}
		s.Listed, s.ClusterID, s.Unauthorized = false, 0, true
		return s
	}
	known := func() *etcdv1.EtcdCluster { return told(wanted(3), serving(3)) }
	larger, upgraded := known(), known()
	larger.Spec.Size, upgraded.Spec.Version = 5, "3.7.3"
	noSet := func(m *etcd.Member) { m.Set = etcd.Set{} }
	grant := "etcdctl user add client --no-password && etcdctl user grant-role client root"
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		says   string
		words  string
	}{
		"Whole":      {"nothing has to change", known(), refusing(serving(3)), "Settled AsDeclared", ""},
		"Grows":      {"etcd would refuse it", larger, refusing(serving(3)), "Blocked AuthEnabled", grant},
		"NoSet":      {"Kubernetes does not ask etcd", larger, refusing(serving(3).with("e-1", noSet)), "Proceed StartMember e-1 (MemberAdded)", ""},
		"Mute":       {"all that can be seen is as declared", known(), mute(serving(3)), "Settled AuthEnabled", "etcdctl auth disable"},
		"MuteGrows":  {"a change waits", larger, mute(serving(3)), "Blocked AuthEnabled", "etcdctl auth disable"},
		"MuteOlder":  {"an upgrade waits", upgraded, mute(serving(3)), "Blocked AuthEnabled", "etcdctl auth disable"},
		"MuteNoSet":  {"Kubernetes does not ask etcd", known(), mute(serving(3).with("e-1", noSet)), "Proceed StartMember e-1 (StatefulSetMissing)", ""},
		"MuteSilent": {"an unready member does not serve", known(), mute(serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Ready, m.Health = false, etcd.Unhealthy })), "Blocked AuthEnabled", "cannot repair e-1 (it does not serve)"},
		"MuteDoomed": {"a repair is due", known(), mute(serving(3).with("e-1", claimTerminating)), "Blocked AuthEnabled", "cannot repair e-1 (its PersistentVolumeClaim is being deleted)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.want, c.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != c.says || !strings.Contains(d.Message, c.words) {
				t.Errorf("%s:\n got %s\nwant %s", c.reason, d, c.says)
			}
		})
	}
}

// Members that deny the operator the list count by the kubelet's probe and the status.
func TestAuthEnabledKeepsTheStatus(t *testing.T) {
	want := told(wanted(3), serving(3))
	s := serving(3).silent()
	for _, m := range s.Members {
		s = s.with(m.Name, func(m *etcd.Member) { m.Health, m.Pod.Ready = etcd.Healthy, true })
	}
	s = s.with("e-2", func(m *etcd.Member) { m.Health, m.Pod.Ready = etcd.Unhealthy, false })
	s.Unauthorized = true
	told(want, s)
	if want.Status.Ready != "2/3" || want.Status.Replicas != 3 || want.Status.ClusterID != "c1" {
		t.Errorf("the status is %+v", want.Status)
	}
	for _, c := range (etcd.Planner{}).Conditions(want, s.World, lifecycle.Block("AuthEnabled", "-")) {
		if c.Type == "Available" && (c.Status != "True" || c.Message != "2 of 3 members serve.") {
			t.Errorf("the condition is %+v", c)
		}
	}
}
