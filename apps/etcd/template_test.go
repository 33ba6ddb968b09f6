package etcd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

const notFound = `pods "e-1-0" is forbidden: serviceaccount "none" not found`

// edited is a cluster whose spec was changed since its members started.
func edited(size int32) *etcdv1.EtcdCluster {
	want := wanted(size)
	want.Spec.Pod.ServiceAccountName = "none"
	return want
}

// tried is the world with the answer to a dry run of the next pod.
func tried(want *etcdv1.EtcdCluster, s scene, refusal, unknown string) scene {
	s.Template = lifecycle.TemplateVerdict{}
	if next, ok := etcd.NextTemplate(want, s.World); ok {
		s.Template = lifecycle.TemplateVerdict{Template: etcd.TemplateOf(next), Refusal: refusal, Unknown: unknown}
	}
	return s
}

func TestRefusedTemplate(t *testing.T) {
	renewed := func(m *etcd.Member) {
		m.Set.Revision, m.Pod.Revision = etcd.Revision(edited(3)), etcd.Revision(edited(3))
	}
	rotated := func(m *etcd.Member) { m.Set.Revision, m.Pod.Revision = m.Set.Revision+".old", m.Pod.Revision+".old" }
	trusting := serving(3).with("e-0", rotated).with("e-1", rotated).with("e-2", rotated)
	trusting.Trust = "new"
	memory := edited(3)
	memory.Spec.Storage.Medium = etcdv1.MediumMemory
	larger := edited(5)
	upgraded := edited(3)
	upgraded.Spec.Version = "3.7"
	uncreated := func(m *etcd.Member) { down(0)(m); renewed(m); m.Pod, m.Set.Problem = etcd.Pod{}, notFound }
	cases := map[string]struct {
		reason  string
		want    *etcdv1.EtcdCluster
		seen    scene
		refusal string
		unknown string
		says    string
		failed  bool
	}{
		"Accepted":    {"the first follower restarts", edited(3), serving(3), "", "", "Proceed Restart e-1 (SpecChanged)", false},
		"Refused":     {"no member restarts, and the change has failed", edited(3), serving(3), notFound, "", "Blocked TemplateRefused", true},
		"Alone":       {"nor does the only member", edited(1), serving(1), notFound, "", "Blocked TemplateRefused", true},
		"Version":     {"a new version is a new template too", upgraded, serving(3), notFound, "", "Blocked TemplateRefused", true},
		"HalfDone":    {"a member runs with it: the spec is not the cause", edited(3), serving(3).with("e-1", renewed), notFound, "", "Blocked TemplateRefused", false},
		"Authorities": {"an earlier spec would not help", wanted(3), trusting, notFound, "", "Blocked TemplateRefused", false},
		"Memory":      {"nor does a member join that could not start", memory, serving(3), notFound, "", "Blocked TemplateRefused", true},
		"Growth":      {"the same", larger, serving(3), notFound, "", "Blocked TemplateRefused", true},
		"Repair":      {"a lost member is removed, and could not be replaced", edited(3), serving(3).with("e-1", lost), notFound, "", "Proceed RemoveMember e-1 (MemberDead)", false},
		"Uncreated":   {"a member that did not serve was tried", edited(3), serving(3).with("e-1", uncreated), notFound, "", "Blocked TemplateRefused", true},
		"Sidecar":     {"a member that answers keeps its pod", wanted(3), serving(3).with("e-1", sidecar), notFound, "", "Blocked TemplateRefused", false},
		"Unknown":     {"no member restarts, and the change has not failed", edited(3), serving(3), "", "no answer", "Blocked TemplateUnverified", false},
		"UnknownJoin": {"a member that joins takes none away", larger, serving(3), "", "no answer", "Proceed AddLearner e-5 (TooFewMembers)", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.want, tried(c.want, c.seen, c.refusal, c.unknown).World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != c.says || d.Failed != c.failed {
				t.Errorf("%s:\n got %s (failed: %t)\nwant %s", c.reason, d, d.Failed, c.says)
			}
			if d.Outcome == lifecycle.OutcomeBlocked && !strings.Contains(d.Message, c.refusal+c.unknown) {
				t.Errorf("%q does not have the API server's words", d.Message)
			}
		})
	}
}

// A dry run of one template tells nothing of another.
func TestRefusalOfAnotherTemplate(t *testing.T) {
	seen := tried(edited(3), serving(3), notFound, "")
	corrected := wanted(3)
	corrected.Spec.Pod.ServiceAccountName = "default"
	if d := (etcd.Planner{}).Next(corrected, seen.World, noon); d.Step.Name != etcd.Restart {
		t.Errorf("the corrected spec has another template: %s", d)
	}
}

// At rest there is nothing to try.
func TestNextTemplate(t *testing.T) {
	for want, seen := range map[*etcdv1.EtcdCluster]scene{wanted(3): serving(3), deleted(edited(3)): serving(3), edited(2): {}} {
		if s, ok := etcd.NextTemplate(want, seen.World); ok {
			t.Errorf("%s is tried", s)
		}
	}
	s, ok := etcd.NextTemplate(edited(3), serving(3).World)
	if !ok || s.Target != "e-1" || s.Args[etcd.ArgRevision] != etcd.Revision(edited(3)) {
		t.Errorf("%s: %v", s, s.Args)
	}
}

// A member that serves is not restarted although the planner saw no refusal.
func TestRestartIsDeferredWhenTheTemplateIsRefused(t *testing.T) {
	want, seen := edited(3), serving(3)
	d := etcd.Planner{}.Next(want, seen.World, noon)
	if err := etcd.Moved(seen.World, tried(want, seen, "", "").World, d.Step); err != nil {
		t.Error(err)
	}
	if err := etcd.Moved(seen.World, tried(want, seen, notFound, "").World, d.Step); err == nil || !strings.Contains(err.Error(), notFound) {
		t.Errorf("%s: %v", d, err)
	}
}

// In every small world, no member that answers restarts for a refused template, and none is
// removed for it.
func TestRefusedTemplateTakesNoMemberInEverySmallWorld(t *testing.T) {
	refused := 0
	for _, medium := range []etcdv1.Medium{etcdv1.MediumPersistent, etcdv1.MediumMemory} {
		for _, size := range []int32{1, 3} {
			smallWorlds(letters+byHand+inTheWay, atMost(3, 2), func(code string) {
				want := edited(size)
				want.Spec.Storage.Medium, want.Status.Bootstrap.Formed = medium, true
				if followRefused(t, fmt.Sprintf("%s to %d, %s", code, size, medium), want, world(code)) == "TemplateRefused" {
					refused++
				}
			})
		}
	}
	if refused < atMost(1000, 50) {
		t.Errorf("the refusal is reported in %d worlds only", refused)
	}
}

// followRefused follows the planner while the API server rejects every pod, and returns the reason
// with which it ends.
func followRefused(t *testing.T, code string, want *etcdv1.EtcdCluster, seen scene) string {
	t.Helper()
	p := etcd.Planner{}
	var story []string
	for range 40 {
		seen = tried(want, seen, notFound, "")
		p.Status(want, seen.World)
		d := p.Next(want, seen.World, noon)
		story = append(story, strings.SplitN(d.String(), ":", 2)[0])
		if d.Outcome != lifecycle.OutcomeProceed && d.Outcome != lifecycle.OutcomeWait {
			if d.Outcome == lifecycle.OutcomeSettled {
				t.Fatalf("%s: settled without the spec\n%s", code, strings.Join(story, "\n"))
			}
			return d.Reason
		}
		if taken := takes(seen.World, d.Step, want); taken {
			t.Fatalf("%s: a member is taken\n%s", code, strings.Join(story, "\n"))
		}
		_, after := p.Effect(want, seen.World, d.Step)
		seen = uncreated(scene{after}, d.Step)
	}
	return ""
}

// takes reports whether the step stops a member that answers for the new template.
func takes(seen etcd.World, s lifecycle.Step, want *etcdv1.EtcdCluster) bool {
	for _, m := range seen.Members {
		if m.Name == s.Target && m.Health == etcd.Healthy && m.Role == etcd.Voter {
			return s.Name == etcd.Restart || s.Name == etcd.RemoveMember && s.Reason == "SpecChanged" && len(seen.Members) <= int(want.Spec.Size)
		}
	}
	return false
}

// uncreated is the world in which the API server rejected the pod of the step.
func uncreated(s scene, done lifecycle.Step) scene {
	if done.Name != etcd.Restart && done.Name != etcd.StartMember && done.Name != etcd.RestoreStatefulSet {
		return s
	}
	return s.with(done.Target, func(m *etcd.Member) {
		if done.Name == etcd.RestoreStatefulSet && m.Pod.Exists {
			return
		}
		down(0)(m)
		m.Pod, m.Set.Problem = etcd.Pod{}, notFound
	})
}

func TestRefusedTemplateInAPreview(t *testing.T) {
	seen := tried(edited(3), serving(3), notFound, "")
	if diff := cmp.Diff("Blocked TemplateRefused", steps(edited(3), seen.World)); diff != "" {
		t.Error(diff)
	}
}
