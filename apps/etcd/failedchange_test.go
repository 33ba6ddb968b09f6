package etcd_test

import (
	"testing"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// changed is a cluster of which the status knows the scene, and whose spec changed then.
func changed(s scene) *etcdv1.EtcdCluster {
	c := told(wanted(int32(len(s.Members))), s)
	c.Spec.Pod.PriorityClassName = "high"
	return c
}

// misdeclared runs, and does not serve with the spec that it alone has.
func misdeclared(ago time.Duration) func(*etcd.Member) {
	return func(m *etcd.Member) {
		down(ago)(m)
		m.Set.Revision, m.Pod.Revision = "bad", "bad"
	}
}

// refused has no pod, because the API server rejects what its spec declares.
func refused(m *etcd.Member) {
	misdeclared(time.Minute)(m)
	m.Set.Problem, m.Pod = "no PriorityClass with name high was found", etcd.Pod{}
}

// pending are problems of members while a change of the spec is not carried out yet, or was corrected.
func pending() map[string]page {
	with := func(edit func(*etcd.Member)) scene { return serving(3).with("e-1", edit) }
	learner := func(edit func(*etcd.Member)) scene {
		return serving(2).with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); m.Role = etcd.Learner; edit(m) })
	}
	noNode := func(m *etcd.Member) {
		down(time.Hour)(m)
		m.Silence, m.Pod.Leaving = "the node n no longer exists", true
	}
	noPod := func(m *etcd.Member) { down(time.Hour)(m); m.Pod = etcd.Pod{} }
	lastOld := serving(3).with("e-1", noNode)
	for _, name := range []string{"e-0", "e-2"} {
		lastOld = lastOld.with(name, func(m *etcd.Member) { renewedMemory(m, changed(serving(3))) })
	}
	growing := func(s scene) *etcdv1.EtcdCluster { c := changed(s); c.Spec.Size = 3; return c }
	return map[string]page{
		"PendingDead":      {"a change that waits does not keep a dead member: its own spec serves elsewhere", changed(serving(3)), with(noNode), "Proceed RemoveMember e-1 (MemberDead)"},
		"PendingNoPod":     {"nor one without a pod", changed(serving(3)), with(noPod), "Proceed RemoveMember e-1 (MemberDead)"},
		"PendingNoPlace":   {"nor one that finds no node", changed(serving(3)), with(trouble(lifecycle.PodProblemUnschedulable, time.Hour)), "Proceed RemoveMember e-1 (MemberDead)"},
		"PendingCrash":     {"nor one that crash-loops", changed(serving(3)), with(trouble(lifecycle.PodProblemCrashLoopBackOff, time.Hour)), "Proceed RemoveMember e-1 (MemberDead)"},
		"PendingSilent":    {"it has its time to answer", changed(serving(3)), with(down(time.Minute)), "Wait Serving e-1 (MemberNotServing)"},
		"PendingLearner":   {"nor does a learner that went silent wait for ever", growing(serving(2)), learner(down(time.Hour)), "Proceed RemoveMember e-3 (LearnerDead)"},
		"PendingLast":      {"the last member of a rollout is replaced if its node is gone", changed(serving(3)), lastOld, "Proceed RemoveMember e-1 (MemberDead)"},
		"CorrectedSilent":  {"a member that runs and never serves with a spec of its own gets the corrected one", told(wanted(3), serving(3)), with(misdeclared(time.Hour)), "Proceed Restart e-1 (SpecCorrected)"},
		"CorrectedEarly":   {"it has its time to answer, too", told(wanted(3), serving(3)), with(misdeclared(time.Minute)), "Wait Serving e-1 (MemberNotServing)"},
		"CorrectedLearner": {"so does a learner", told(wanted(3), serving(2)), learner(misdeclared(time.Hour)), "Proceed Restart e-3 (SpecCorrected)"},
		"CorrectedRefused": {"and a member whose pod the API server rejected", told(wanted(3), serving(3)), with(refused), "Proceed Restart e-1 (SpecCorrected)"},
		"CorrectedAlone":   {"and a single member", told(wanted(1), serving(1)), serving(1).silent().with("e-0", misdeclared(time.Hour)), "Proceed Restart e-0 (SpecCorrected)"},
		"CorrectedTwo":     {"without a quorum, silence does not show whose spec is wrong", changed(serving(2)), serving(2).silent().with("e-0", misdeclared(time.Hour)).with("e-1", down(time.Hour)), "Wait QuorumBack e (QuorumAway)"},
	}
}

// A member whose own spec serves elsewhere gets another one as a change, which policies may hold, and
// which may be irreversible. A member whose spec serves nowhere is repaired.
func TestIntentOfACorrection(t *testing.T) {
	bad := func(what lifecycle.PodProblem) scene {
		return serving(3).with("e-1", misdeclared(0)).with("e-1", func(m *etcd.Member) { trouble(what, 20*time.Second)(m) })
	}
	upgrade := changed(serving(1))
	upgrade.Spec.Version = "3.7"
	stale := serving(3).with("e-1", func(m *etcd.Member) {
		trouble(lifecycle.PodProblemImagePullBackOff, time.Minute)(m)
		m.Pod.Stale = true
	})
	asCreated := func(m *etcd.Member) { sidecar(m); m.Pod.Stale = false }
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		intent lifecycle.Intent
		class  lifecycle.Class
	}{
		"Moment":       {"a drained node is no reason to carry out a change", changed(serving(3)), serving(3).with("e-1", trouble(lifecycle.PodProblemUnschedulable, 20*time.Second)), lifecycle.IntentChange, lifecycle.ClassDisruptive},
		"Image":        {"nor is a registry that does not answer", changed(serving(3)), serving(3).with("e-1", trouble(lifecycle.PodProblemImagePullBackOff, 20*time.Second)), lifecycle.IntentChange, lifecycle.ClassDisruptive},
		"Sidecar":      {"nor is the container of another user", changed(serving(3)), serving(3).with("e-1", asCreated), lifecycle.IntentChange, lifecycle.ClassDisruptive},
		"SidecarStale": {"the restored template is a repair", told(wanted(3), serving(3)), serving(3).with("e-1", sidecar), lifecycle.IntentRepair, lifecycle.ClassDisruptive},
		"Corrected":    {"a spec that works nowhere is", told(wanted(3), serving(3)), bad(lifecycle.PodProblemImagePullBackOff), lifecycle.IntentRepair, lifecycle.ClassDisruptive},
		"Stale":        {"an edited template was not declared", changed(serving(3)), stale, lifecycle.IntentRepair, lifecycle.ClassDisruptive},
		"Irreversible": {"the upgrade of the last member is irreversible, whatever is the cause", upgrade, serving(1).silent().with("e-0", trouble(lifecycle.PodProblemUnschedulable, time.Second)), lifecycle.IntentRepair, lifecycle.ClassIrreversible},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.want, c.seen.World, noon)
			if d.Step.Reason != "SpecCorrected" || d.Step.Intent != c.intent || d.Step.Class != c.class {
				t.Errorf("%s: %s is a %s, and %s", c.reason, d, d.Step.Intent, d.Step.Class)
			}
		})
	}
}

func TestAppliesChange(t *testing.T) {
	seen := serving(3).with("e-1", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} }).
		with("e-2", func(m *etcd.Member) { m.Set.Revision += ".old"; m.Pod.Revision += ".old" })
	restart := func(member, revision, version string) lifecycle.Step {
		return lifecycle.Step{Name: etcd.Restart, Target: member, Args: map[string]string{etcd.ArgRevision: revision, etcd.ArgVersion: version}}
	}
	same := etcd.Revision(wanted(3))
	for name, c := range map[string]struct {
		step lifecycle.Step
		want bool
	}{
		"Spec": {restart("e-0", "other", etcd.Newest), true}, "Version": {restart("e-0", same, "3.7.3"), true},
		"Same": {restart("e-0", same, etcd.Newest), false}, "Authorities": {restart("e-2", same+".new", etcd.Newest), false},
		"Lost": {restart("e-1", "other", etcd.Newest), false}, "Removal": {lifecycle.Step{Name: etcd.RemoveMember, Target: "e-0"}, false},
	} {
		if got := (etcd.Planner{}).AppliesChange(wanted(3), seen.World, c.step); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
