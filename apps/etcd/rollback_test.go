package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// Only a problem of the current spec is a failed change: a rollback would not repair a fault.
func TestFailedChange(t *testing.T) {
	spec := wanted(3)
	spec.Spec.Pod.PriorityClassName = "high"
	renewed := func(m *etcd.Member) {
		m.Set.Revision, m.Pod.Revision = etcd.Revision(spec), etcd.Revision(spec)
	}
	ill := func(what lifecycle.PodProblem, ago time.Duration) scene {
		return serving(3).with("e-1", renewed).with("e-1", trouble(what, ago))
	}
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		failed bool
	}{
		"Crash":   {"the first that has the new spec does not run", spec, ill(lifecycle.PodProblemCrashLoopBackOff, time.Hour), true},
		"Image":   {"nor gets its image", spec, ill(lifecycle.PodProblemImagePullBackOff, time.Minute), true},
		"NoNode":  {"an autoscaler gets its time", spec, ill(lifecycle.PodProblemUnschedulable, time.Minute), false},
		"NoNode2": {"but not forever", spec, ill(lifecycle.PodProblemUnschedulable, time.Hour), true},
		"Works":   {"another runs with the same spec", spec, ill(lifecycle.PodProblemImagePullBackOff, time.Hour).with("e-2", renewed), false},
		"Old":     {"the failing member has the old spec", spec, serving(3).with("e-1", renewed).with("e-2", trouble(lifecycle.PodProblemCrashLoopBackOff, time.Hour)), false},
		"Fault":   {"nothing was changed", wanted(3), serving(3).with("e-1", trouble(lifecycle.PodProblemImagePullBackOff, time.Hour)), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d := (etcd.Planner{}).Next(c.want, c.seen.World, noon); d.Failed != c.failed || d.Failed && d.Outcome != lifecycle.OutcomeBlocked {
				t.Errorf("%s: failed = %t: %s", c.reason, d.Failed, d)
			}
		})
	}
}

// In a cluster of one or two the first changed member breaks the quorum, and no other member can
// show that the change is the cause. The planner only suspects it.
func TestSuspectChangeWithoutQuorum(t *testing.T) {
	ill := func(n int, what lifecycle.PodProblem, ago time.Duration) scene {
		return serving(n).silent().with("e-0", func(m *etcd.Member) {
			m.Set.Revision, m.Pod.Revision = etcd.Revision(wanted(1)), etcd.Revision(wanted(1))
		}).
			with("e-0", trouble(what, ago))
	}
	old := func(m *etcd.Member) { m.Set.Revision, m.Pod.Revision = "old", "old" }
	cases := map[string]struct {
		reason  string
		size    int32
		seen    scene
		suspect bool
		says    string
	}{
		"Image":     {"the only member does not get its image", 1, ill(1, lifecycle.PodProblemImagePullBackOff, time.Minute), true, "Blocked ImagePullBackOff"},
		"Crash":     {"or crash-loops", 1, ill(1, lifecycle.PodProblemCrashLoopBackOff, time.Minute), true, "Wait QuorumBack e (CrashLoopBackOff)"},
		"NoNode":    {"an autoscaler gets its time", 1, ill(1, lifecycle.PodProblemUnschedulable, time.Minute), false, "Blocked Unschedulable"},
		"NoNode2":   {"but not forever", 1, ill(1, lifecycle.PodProblemUnschedulable, time.Hour), true, "Blocked Unschedulable"},
		"FirstOf2":  {"the other has the old spec", 2, ill(2, lifecycle.PodProblemCrashLoopBackOff, time.Minute).with("e-1", old), true, "Wait QuorumBack e (CrashLoopBackOff)"},
		"SecondOf2": {"the other ran with the same", 2, ill(2, lifecycle.PodProblemCrashLoopBackOff, time.Minute), false, "Wait QuorumBack e (QuorumAway)"},
		"Of3":       {"two others could show it", 3, ill(3, lifecycle.PodProblemImagePullBackOff, time.Minute).with("e-1", old).with("e-2", old), false, "Blocked ImagePullBackOff"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := told(wanted(c.size), serving(int(c.size)))
			d := etcd.Planner{}.Next(want, c.seen.World, noon)
			if d.Suspect != c.suspect || d.Failed || !strings.HasPrefix(d.String(), c.says) {
				t.Errorf("%s: suspect = %t: %s", c.reason, d.Suspect, d)
			}
		})
	}
}

// The rollback of the only member is one restart, too.
func TestRollbackOfTheOnlyMember(t *testing.T) {
	for _, what := range []lifecycle.PodProblem{lifecycle.PodProblemImagePullBackOff, lifecycle.PodProblemCrashLoopBackOff} {
		back := told(wanted(1), serving(1))
		seen := serving(1).silent().with("e-0", func(m *etcd.Member) { m.Set.Revision, m.Pod.Revision = "failed", "failed" }).
			with("e-0", trouble(what, time.Hour))
		p := plan(back, seen.World)
		if got := p.Actions(); len(got) != 1 || got[0].String() != "Restart e-0" || got[0].Class == lifecycle.ClassIrreversible || !p.Settles() {
			t.Errorf("%s: it takes %v, and ends with %s %s", what, got, p.Outcome, p.Message)
		}
	}
}

// The rollback from a version that never ran is one restart, and not irreversible.
func TestRollbackOfFailedUpgrade(t *testing.T) {
	back := wanted(3)
	back.Spec.Version = "3.5.35"
	seen := serving(3)
	for _, m := range seen.Members {
		seen = seen.with(m.Name, func(m *etcd.Member) { m.Version, m.Set.Version, m.Pod.Version = "3.5.35", "3.5.35", "3.5.35" })
	}
	seen = seen.with("e-1", func(m *etcd.Member) { m.Set.Version, m.Pod.Version, m.Version = "3.6.99", "3.6.99", "" }).
		with("e-1", trouble(lifecycle.PodProblemImagePullBackOff, time.Hour))
	p := plan(back, seen.World)
	if got := p.Actions(); len(got) != 1 || got[0].String() != "Restart e-1" || got[0].Class != lifecycle.ClassDisruptive || !p.Settles() {
		t.Errorf("it takes %v, and ends with %s %s", got, p.Outcome, p.Message)
	}
}

func TestLastStepOfMinorUpgradeIsIrreversible(t *testing.T) {
	want := wanted(3)
	want.Spec.Version = "3.6"
	seen := serving(3)
	for _, m := range seen.Members {
		seen = seen.with(m.Name, func(m *etcd.Member) { m.Version, m.Set.Version, m.Pod.Version = "3.5.35", "3.5.35", "3.5.35" })
	}
	var got []string
	for _, s := range plan(want, seen.World).Actions() {
		if s.Name == etcd.Restart {
			got = append(got, string(s.Class))
		}
	}
	if diff := cmp.Diff([]string{"Disruptive", "Disruptive", "Irreversible"}, got); diff != "" {
		t.Error(diff)
	}
	patch := wanted(3)
	patch.Spec.Version = "3.5.34"
	for _, s := range plan(patch, seen.World).Actions() {
		if s.Class == lifecycle.ClassIrreversible {
			t.Errorf("within a minor release %s can be undone", s)
		}
	}
}

// A requested removal has the cause SpecChange, although it has the intent of a repair.
func TestCauseOfDeleteMember(t *testing.T) {
	left := func(m *etcd.Member) { m.Role, m.ID, m.Joined = etcd.Outside, 0, false }
	for size, cause := range map[int32]lifecycle.Cause{2: lifecycle.CauseSpecChange, 3: lifecycle.CauseFault} {
		d := etcd.Planner{}.Next(wanted(size), serving(3).with("e-2", left).World, noon)
		if d.Step.Name != etcd.DeleteMember || d.Step.Cause != cause || d.Step.Intent != lifecycle.IntentRepair {
			t.Errorf("of %d wanted: %s, cause %s", size, d, d.Step.Cause)
		}
	}
}

// A new member that does not run yet is not a fault either.
func TestCauseOfStartMember(t *testing.T) {
	for joined, cause := range map[bool]lifecycle.Cause{false: lifecycle.CauseSpecChange, true: lifecycle.CauseFault} {
		unset := func(m *etcd.Member) { m.Set, m.Joined = etcd.Set{}, joined }
		if !joined {
			unset = func(m *etcd.Member) { *m = etcd.Member{Name: m.Name, ID: m.ID, PeerURL: m.PeerURL, Role: etcd.Learner} }
		}
		d := etcd.Planner{}.Next(wanted(3), serving(3).with("e-2", unset).World, noon)
		if d.Step.Name != etcd.StartMember || d.Step.Cause != cause || d.Step.Intent != lifecycle.IntentRepair {
			t.Errorf("joined %v: %s, cause %s", joined, d, d.Step.Cause)
		}
	}
}

func TestEvidence(t *testing.T) {
	seen := serving(3).with("e-1", trouble(lifecycle.PodProblemCrashLoopBackOff, time.Hour)).with("e-2", func(m *etcd.Member) { m.Volume = etcd.Volume{Lost: true} })
	want := []string{
		"etcd lists 3 voters and 0 learners; 1 voters serve and e-0 leads.",
		"e-0: voter, healthy, pod ready, runs " + etcd.Newest + ", log at 1000 of 1000.",
		"e-1: voter, does not answer, pod in CrashLoopBackOff.",
		"e-2: voter, healthy, pod ready, runs " + etcd.Newest + ", log at 1000 of 1000, its data is lost.",
	}
	got := etcd.Planner{}.Evidence(wanted(3), seen.World, lifecycle.Step{Target: "e-0"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Volumes only grow, so a rollback keeps their present size, and changes nothing else.
func TestRollbackKeepsVolumeSize(t *testing.T) {
	sized := func(size string, medium etcdv1.Medium) *etcdv1.EtcdCluster {
		c := wanted(3)
		c.Spec.Storage.Medium, c.Spec.Storage.Size = medium, nil
		if size != "" {
			c.Spec.Storage.Size = new(resource.MustParse(size))
		}
		return c
	}
	kept := []string{"spec.storage.size stays 2Gi, as volumes only grow"}
	cases := map[string]struct {
		earlier, now *etcdv1.EtcdCluster
		want         string
		kept         []string
	}{
		"Grown":    {sized("1Gi", etcdv1.MediumPersistent), sized("2Gi", etcdv1.MediumPersistent), "2Gi", kept},
		"Unset":    {sized("", etcdv1.MediumPersistent), sized("2Gi", etcdv1.MediumPersistent), "2Gi", kept},
		"Same":     {sized("2048Mi", etcdv1.MediumPersistent), sized("2Gi", etcdv1.MediumPersistent), "2Gi", nil},
		"Smaller":  {sized("4Gi", etcdv1.MediumPersistent), sized("2Gi", etcdv1.MediumPersistent), "4Gi", nil},
		"Volatile": {sized("1Gi", etcdv1.MediumMemory), sized("2Gi", etcdv1.MediumMemory), "1Gi", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := etcd.Planner{}.Retain(c.now, c.earlier)
			if diff := cmp.Diff(c.kept, got); diff != "" || c.earlier.Spec.Storage.Size.Cmp(resource.MustParse(c.want)) != 0 {
				t.Errorf("the size is %s, kept %s", c.earlier.Spec.Storage.Size, diff)
			}
			c.earlier.Spec.Storage = wanted(3).Spec.Storage
			if diff := cmp.Diff(wanted(3).Spec, c.earlier.Spec); diff != "" {
				t.Errorf("more than storage was changed: %s", diff)
			}
		})
	}
}

// A rollback takes no protection from the data, and does not trust a leaked key again.
func TestRollbackKeepsRetentionAndRevocation(t *testing.T) {
	older, newer := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
	spec := func(retention etcdv1.Retention, before *metav1.Time) *etcdv1.EtcdCluster {
		c := wanted(3)
		c.Spec.TLS.Mode, c.Spec.TLS.RevokeBefore, c.Spec.Storage.Retention = etcdv1.TLSModeManaged, before, retention
		return c
	}
	earlier := spec(etcdv1.RetentionDelete, nil)
	if kept := (etcd.Planner{}).Retain(spec(etcdv1.RetentionRetain, &newer), earlier); len(kept) != 2 || !etcd.Retains(earlier) || !earlier.Spec.TLS.RevokeBefore.Equal(&newer) {
		t.Errorf("kept %q: %+v, %+v", kept, earlier.Spec.Storage, earlier.Spec.TLS)
	}
	earlier = spec(etcdv1.RetentionRetain, &newer)
	if kept := (etcd.Planner{}).Retain(spec(etcdv1.RetentionDelete, &older), earlier); len(kept) != 0 || !etcd.Retains(earlier) || !earlier.Spec.TLS.RevokeBefore.Equal(&newer) {
		t.Errorf("kept %q: %+v, %+v", kept, earlier.Spec.Storage, earlier.Spec.TLS)
	}
}
