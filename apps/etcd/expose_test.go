package etcd_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// The client Service selects exposed pods, or all pods while one has no label.
func TestClientServiceSelectsExposedMembers(t *testing.T) {
	cases := map[string]struct {
		reason string
		seen   scene
		want   string
	}{
		"New":      {"there are no members yet", scene{}, "true"},
		"Exposed":  {"all are", serving(3), "true"},
		"Joining":  {"a joining member is ready before it serves", serving(3).with("e-3", hidden), "true"},
		"Older":    {"an older operator set no labels", serving(3).with("e-1", unlabelled), ""},
		"Stripped": {"a pod whose label was removed counts too", serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Exposure = etcd.Unlabelled }), ""},
		"Leaving":  {"a pod that is being deleted does not count", serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Exposure, m.Pod.Leaving = etcd.Unlabelled, true }), "true"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := etcd.Planner{}.Resources(wanted(3), c.seen.World)
			if err != nil {
				t.Fatal(err)
			}
			for _, obj := range objects {
				var selected map[string]string
				switch o := obj.(type) {
				case *corev1.Service:
					if selected = o.Spec.Selector; o.Name == "e" {
						selected = map[string]string{etcd.LabelExposed: c.want} // members find each other always
					}
				case *policyv1.PodDisruptionBudget:
					selected = o.Spec.Selector.MatchLabels
				default:
					continue
				}
				if got := selected[etcd.LabelExposed]; got != c.want {
					t.Errorf("%s: %T %s selects %q, want %q", c.reason, obj, obj.GetName(), got, c.want)
				}
			}
		})
	}
}

// Initial members are exposed from the start, joining members are not.
func TestStartsExposed(t *testing.T) {
	joining := serving(3).with("e-3", func(m *etcd.Member) { m.Role, m.ID, m.Bootstrap = etcd.Learner, 4, etcd.BootstrapJoin })
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		is     etcd.Exposure
	}{
		"Forming":  {"there are no other members", wanted(3), scene{}, etcd.Exposed},
		"Joining":  {"a learner serves no clients", resized(4), joining, etcd.Hidden},
		"Voter":    {"before 3.4 a voter has no data yet", resized(4), joining.with("e-3", func(m *etcd.Member) { m.Role = etcd.Voter }), etcd.Hidden},
		"Back":     {"it served before its StatefulSet was deleted", wanted(3), serving(3).with("e-2", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} }), etcd.Exposed},
		"Stripped": {"it may be a learner", told(wanted(3), serving(3)), serving(3).silent().with("e-2", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} }), etcd.Hidden},
		"Ended":    {"a terminated learner is unchanged", resized(4), joining.with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); m.Role, m.Pod.Ended = etcd.Learner, true; hidden(m) }), etcd.Hidden},
	}
	for name, c := range cases {
		d := etcd.Planner{}.Next(c.want, c.seen.World, noon)
		if got := etcd.Exposure(d.Step.Args[etcd.ArgExposed]); got != c.is {
			t.Errorf("%s: %s: %s says %q, want %q", name, c.reason, d, got, c.is)
		}
	}
}
