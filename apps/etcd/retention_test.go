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
		"Older":       {"an older operator gave volumes no owner", stored("", etcdv1.RetentionDelete), withOwners(false), "SetRetention e [Delete]"},
		"Deleted":     {"then they have one", stored("", etcdv1.RetentionDelete), withOwners(true), ""},
		"Kept":        {"until the user changes that", stored("", etcdv1.RetentionRetain), withOwners(true), "SetRetention e [Retain]"},
		"One":         {"one volume is enough for a step", stored("", etcdv1.RetentionRetain), serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Owned = true }), "SetRetention e [Retain]"},
		"QuorumAway":  {"no member has to serve for it", stored("", etcdv1.RetentionRetain), withOwners(true).silent(), "SetRetention e [Retain]"},
		"Memory":      {"memory has no volume", stored(etcdv1.MediumMemory, ""), withOwners(false), ""},
		"MemoryOlder": {"whatever an older object says", stored(etcdv1.MediumMemory, etcdv1.RetentionDelete), withOwners(false), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := etcd.Planner{}.Next(told(c.want, c.seen), c.seen.World, noon).Step
			got := ""
			if s.Name == etcd.SetRetention {
				if protects := etcd.Retains(c.want); protects != (s.Intent == lifecycle.IntentRepair) {
					t.Errorf("policies must be able to hold a change to Delete, and no other: %s", s.Intent)
				}
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

// The status tells what Kubernetes does with the volumes now, whatever the spec says.
func TestVolumeRetentionInStatus(t *testing.T) {
	cases := map[string]struct {
		want *etcdv1.EtcdCluster
		seen scene
		says etcdv1.Retention
	}{
		"Retained":    {stored("", ""), withOwners(false), etcdv1.RetentionRetain},
		"StillOwned":  {stored("", etcdv1.RetentionRetain), withOwners(true), etcdv1.RetentionDelete},
		"OneOwned":    {stored("", etcdv1.RetentionRetain), serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Owned = true }), etcdv1.RetentionDelete},
		"NotYetOwned": {stored("", etcdv1.RetentionDelete), withOwners(false), etcdv1.RetentionDelete}, // before the first has an owner
		"NoVolumes":   {stored("", ""), scene{}, etcdv1.RetentionRetain},
		"Memory":      {stored(etcdv1.MediumMemory, ""), withOwners(false), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := told(c.want, c.seen)
			if got := want.Status.VolumeRetention; got != c.says {
				t.Errorf("got %q, want %q", got, c.says)
			}
		})
	}
}

// No volume gets an owner before the status says so: a crash in between would hide it from the admission policy.
func TestRetentionIsRecordedBeforeOwners(t *testing.T) {
	want, seen := stored("", etcdv1.RetentionDelete), withOwners(false)
	want.Status.VolumeRetention = etcdv1.RetentionRetain
	if d := (etcd.Planner{}).Next(want, seen.World, noon); d.Outcome != lifecycle.OutcomeRetry || d.Reason != "RecordingRetention" {
		t.Errorf("got %s", d)
	}
	if d := (etcd.Planner{}).Next(told(want, seen), seen.World, noon); d.Step.Name != etcd.SetRetention {
		t.Errorf("got %s", d)
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
			"and the data of 1 of them: their volumes are being deleted already. This cannot be undone; to keep the data, wait until"},
		"Retain": {stored("", ""), withOwners(false), lifecycle.ClassDisruptive, "their 3 volumes stay with the data. To delete the data too: kubectl delete pvc -n ns -l etcd.database.coreos.com/cluster-uid="},
		"Delete": {stored("", etcdv1.RetentionDelete), withOwners(true), lifecycle.ClassIrreversible, "their 3 volumes are deleted with all data. This cannot be undone"},
		"Older":  {stored("", etcdv1.RetentionDelete), withOwners(false), lifecycle.ClassIrreversible, "their 3 volumes are deleted with all data"},
		"Late":   {stored("", etcdv1.RetentionRetain), withOwners(true), lifecycle.ClassIrreversible, "their 3 volumes are deleted with all data"},
		"Memory": {stored(etcdv1.MediumMemory, ""), withOwners(false), lifecycle.ClassIrreversible, "spec.storage.medium Memory has no volume to keep"},
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

// ends are worlds of a cluster that is being deleted.
func ends() map[string]page {
	left := serving(1).silent().with("e-0", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} })
	owned := left.with("e-0", func(m *etcd.Member) { m.Volume.Owned = true })
	return map[string]page{
		"Farewell":     {"a deletion is one step", deleted(wanted(3)), serving(3), "Proceed DeleteCluster e (ClusterDeleted)"},
		"FarewellDown": {"also when etcd is down", deleted(wanted(3)), serving(3).silent(), "Proceed DeleteCluster e (ClusterDeleted)"},
		"VolumeLeft":   {"a volume with an owner is deleted too", deleted(wanted(1)), owned, "Proceed DeleteCluster e (ClusterDeleted)"},
		"VolumeGoes":   {"a claim that is being deleted lasts as long as its pod", deleted(wanted(1)), owned.with("e-0", claimTerminating), "Proceed DeleteCluster e (ClusterDeleted)"},
		"VolumeKept":   {"others have deleted the members, and policies are still asked", deleted(wanted(1)), left, "Proceed DeleteCluster e (ClusterDeleted)"},
		"NoneLeft":     {"also if nothing is left", deleted(wanted(3)), scene{}, "Proceed DeleteCluster e (ClusterDeleted)"},
		"TornDown":     {"then Kubernetes deletes the rest", deleted(wanted(3)), scene{etcd.World{TornDown: true}}, "Settled MembersDeleted"},
	}
}
