package etcd_test

import (
	"strings"
	"testing"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// TestDoomedVolumes: a member whose PersistentVolume is gone, or whose claim was deleted under its pod, is as
// doomed as one whose claim is being deleted, in all worlds of up to three members.
func TestDoomedVolumes(t *testing.T) {
	doomed := map[string]func(*etcd.Member){
		"unbound": func(m *etcd.Member) { m.Volume.Terminating, m.Volume.Unbound = false, m.Volume.Terminating },
		"earlier": func(m *etcd.Member) { m.Volume.Terminating, m.Volume.Earlier = false, m.Volume.Terminating },
	}
	for name, doom := range doomed {
		t.Run(name, func(t *testing.T) { isDoomed(t, doom) })
	}
}

func isDoomed(t *testing.T, doom func(*etcd.Member)) {
	t.Helper()
	smallWorlds("sdxltjU", 3, func(code string) {
		if !strings.ContainsAny(code, "tjU") || onlyClaims(code) {
			return
		}
		terminating := world(code)
		unbound := terminating
		for _, m := range terminating.Members {
			unbound = unbound.with(m.Name, doom)
		}
		for _, listed := range []bool{true, false} {
			want := told(wanted(3), terminating)
			want.Status.Bootstrap.Formed = true
			terminating.Listed, unbound.Listed = listed, listed
			expected := etcd.Planner{}.Next(want, terminating.World, time.Unix(1000, 0))
			got := etcd.Planner{}.Next(want, unbound.World, time.Unix(1000, 0))
			if got.Outcome != expected.Outcome || got.Step.Name != expected.Step.Name || got.Step.Target != expected.Step.Target || got.Reason != expected.Reason {
				t.Errorf("%s: %v, want %v", code, got, expected)
			}
		}
	})
}

// TestLostPersistentVolumeMayReturn: an administrator may bind another PersistentVolume to the claim while no pod
// uses it. The member has its time to answer before it is replaced.
func TestLostPersistentVolumeMayReturn(t *testing.T) {
	gone := func(ago time.Duration) scene {
		return serving(3).with("e-1", func(m *etcd.Member) {
			down(ago)(m)
			m.Volume.Unbound, m.Pod = true, etcd.Pod{}
		})
	}
	for ago, want := range map[time.Duration]string{time.Second: "Wait Serving e-1 (MemberNotServing)", time.Hour: "Proceed RemoveMember e-1 (MemberDead)"} {
		seen := gone(ago)
		d := etcd.Planner{}.Next(told(wanted(3), seen), seen.World, noon)
		if !strings.HasPrefix(d.String(), want) || !strings.Contains(d.Message, "PersistentVolume") {
			t.Errorf("%s ago: %s", ago, d)
		}
	}
	two := serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Unbound, m.Pod, m.Set = true, etcd.Pod{}, etcd.Set{} }).
		with("e-2", func(m *etcd.Member) { m.Volume.Unbound, m.Pod, m.Set = true, etcd.Pod{}, etcd.Set{} })
	if d := (etcd.Planner{}).Next(told(wanted(3), two), two.silent().World, noon); d.Outcome != lifecycle.OutcomeBlocked || !strings.Contains(d.Message, "restore a lost volume") {
		t.Errorf("a majority is lost: %s", d)
	}
}

// TestUnusableCertificatesReplaceNoMember: a member that is silent while a Secret of the user is unusable may be
// silent for that reason, and its replacement could not start.
func TestUnusableCertificatesReplaceNoMember(t *testing.T) {
	silent := serving(3).with("e-1", down(time.Hour))
	silent.Certificates = "spec.tls.secrets.peer: the Secret is unusable."
	if d := (etcd.Planner{}).Next(told(wanted(3), silent), silent.World, noon); d.Outcome == lifecycle.OutcomeProceed {
		t.Errorf("got %s", d)
	}
	lost := silent.with("e-1", lost)
	if d := (etcd.Planner{}).Next(told(wanted(3), lost), lost.World, noon); d.Step.Name != etcd.RemoveMember {
		t.Errorf("its data is lost: %s", d)
	}
}

// TestLostPersistentVolumeMessage: the message names what is gone.
func TestLostPersistentVolumeMessage(t *testing.T) {
	lost := serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Unbound = true })
	d := etcd.Planner{}.Next(told(wanted(3), lost), lost.World, time.Unix(1000, 0))
	if want := "e-3 replaces e-1, whose PersistentVolume no longer exists"; d.Step.Name != etcd.AddLearner || !strings.Contains(d.Step.Message, want) {
		t.Errorf("%v: %s, want %s", d.Step, d.Step.Message, want)
	}
}

// TestClaimDeletedUnderItsPod: the claim that a user created again is the user's, and is not deleted.
func TestClaimDeletedUnderItsPod(t *testing.T) {
	seen := serving(3)
	for _, m := range seen.Members {
		seen = seen.with(m.Name, earlier)
	}
	d := etcd.Planner{}.Next(told(wanted(3), seen), seen.World, noon)
	if d.Step.Name != etcd.AddLearner || !strings.Contains(d.Message, "PersistentVolumeClaim was deleted under its pod") {
		t.Errorf("all claims are gone: %v", d)
	}
	four := serving(4).with("e-1", earlier)
	d = etcd.Planner{}.Next(told(wanted(3), four), four.World, noon)
	if d.Step.Name != etcd.RemoveMember || d.Step.Args[etcd.ArgRetention] != "" {
		t.Errorf("its replacement serves: %v", d)
	}
	left := four.with("e-1", removedByHand)
	d = etcd.Planner{}.Next(told(wanted(3), left), left.World, noon)
	if d.Step.Name != etcd.DeleteMember || d.Step.Args[etcd.ArgRetention] != string(etcdv1.RetentionRetain) {
		t.Errorf("it has left etcd's list: %v", d)
	}
}

func earlier(m *etcd.Member) { m.Volume.Earlier = true }

// TestQuorumOnLostNodesMessage: the message names the nodes that would help.
func TestQuorumOnLostNodesMessage(t *testing.T) {
	seen := serving(3)
	for _, name := range []string{"e-0", "e-1"} {
		seen = seen.with(name, trouble(lifecycle.PodProblemUnschedulable, time.Hour)).with(name, nodeLost)
	}
	d := etcd.Planner{}.Next(told(wanted(3), seen), seen.silent().World, noon)
	if want := "Its volume is on the node n9, which no longer exists. Restore that node with its disk."; !strings.Contains(d.Message, want) {
		t.Errorf("%s: want %s", d, want)
	}
}

// TestWaitMessages: what keeps a member from serving is named.
func TestWaitMessages(t *testing.T) {
	silent := serving(3).with("e-1", down(time.Second))
	refused := silent
	refused.Certificates = "spec.tls.secrets.peer: the Secret is unusable."
	for want, seen := range map[string]scene{
		"the finalizer example.com/x holds it": silent.with("e-1", func(m *etcd.Member) { m.Pod.Leaving, m.Pod.HeldBy = true, "example.com/x" }),
		"the Secret is unusable":               refused,
	} {
		if d := (etcd.Planner{}).Next(told(wanted(3), seen), seen.World, noon); d.Outcome != lifecycle.OutcomeWait || !strings.Contains(d.Message, want) {
			t.Errorf("%s: want %s", d, want)
		}
	}
}
