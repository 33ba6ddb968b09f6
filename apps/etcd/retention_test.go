package etcd_test

import (
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

func stored(medium etcdv1.Medium, retention etcdv1.Retention) *etcdv1.EtcdCluster {
	want := wanted(3)
	want.Spec.Storage.Medium, want.Spec.Storage.Retention = medium, retention
	return want
}

func withOwners(owned bool) scene {
	s := serving(3)
	for _, m := range s.Members {
		s = s.with(m.Name, func(m *etcd.Member) { m.Volume.Owned = owned })
	}
	return s
}

// The volumes have an owner exactly while the spec requests their deletion with the cluster.
func TestVolumeOwnersFollowRetention(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		step   string
	}{
		"Default":     {"volumes stay by default", stored("", ""), withOwners(false), ""},
		"Older":       {"an older operator gave volumes no owner", stored("", etcdv1.Delete), withOwners(false), "SetRetention e [Delete]"},
		"Deleted":     {"then they have one", stored("", etcdv1.Delete), withOwners(true), ""},
		"Kept":        {"until the user changes that", stored("", etcdv1.Retain), withOwners(true), "SetRetention e [Retain]"},
		"One":         {"one volume is enough for a step", stored("", etcdv1.Retain), serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Owned = true }), "SetRetention e [Retain]"},
		"QuorumAway":  {"no member has to serve for it", stored("", etcdv1.Retain), withOwners(true).silent(), "SetRetention e [Retain]"},
		"Memory":      {"memory has no volume", stored(etcdv1.Memory, ""), withOwners(false), ""},
		"MemoryOlder": {"whatever an older object says", stored(etcdv1.Memory, etcdv1.Delete), withOwners(false), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := etcd.Planner{}.Next(c.want, c.seen.World, noon).Step
			got := ""
			if s.Name == etcd.SetRetention {
				got = s.String() + " [" + s.Args[etcd.ArgRetention] + "]"
				_, after := etcd.Planner{}.Effect(c.want, c.seen.World, s)
				if next := (etcd.Planner{}).Next(c.want, after, noon); next.Step.Name == etcd.SetRetention {
					t.Errorf("the step does not end: %s", next)
				}
			}
			if got != c.step {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.step)
			}
		})
	}
}

// A deletion reports what it deletes and keeps, and how to change that.
func TestDeletionReportsRetainedVolumes(t *testing.T) {
	cases := map[string]struct {
		want  *etcdv1.EtcdCluster
		seen  scene
		class lifecycle.Class
		says  string
	}{
		"Doomed": {stored("", ""), withOwners(false).with("e-1", claimTerminating), lifecycle.ClassIrreversible,
			"and the data of 1 of them: their PersistentVolumeClaims are being deleted already. This cannot be undone; to keep the data, wait until"},
		"Retain": {stored("", ""), withOwners(false), lifecycle.ClassDisruptive, "their 3 volumes stay with the data. To delete the data too: kubectl delete pvc -n ns -l etcd.database.coreos.com/cluster-uid="},
		"Delete": {stored("", etcdv1.Delete), withOwners(true), lifecycle.ClassIrreversible, "their 3 volumes are deleted with all data. This cannot be undone"},
		"Older":  {stored("", etcdv1.Delete), withOwners(false), lifecycle.ClassIrreversible, "their 3 volumes are deleted with all data"},
		"Late":   {stored("", etcdv1.Retain), withOwners(true), lifecycle.ClassIrreversible, "their 3 volumes are deleted with all data"},
		"Memory": {stored(etcdv1.Memory, ""), withOwners(false), lifecycle.ClassIrreversible, "spec.storage.medium Memory has no volume to keep"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(deleted(c.want), c.seen.World, noon)
			if d.Step.Name != etcd.DeleteCluster || d.Step.Class != c.class || !strings.Contains(d.Message, c.says) {
				t.Errorf("got %s %s", d.Step.Class, d)
			}
			if len(d.Message) > 256 {
				t.Errorf("%d characters are too many for a warning", len(d.Message))
			}
		})
	}
}
