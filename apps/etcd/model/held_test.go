package model_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/model"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
)

// held is a settled cluster of three members whose changes are held from then on if hold selects them. A change is
// needed if the spec of that time needs it, too.
func held(t *testing.T, hold func(lifecycle.Step) bool) (*plannertest.Harness[*etcdv1.EtcdCluster, etcd.World], *model.Model) {
	t.Helper()
	m, want := model.New(false), newSystem(3).want
	s := plannertest.Enter[*etcdv1.EtcdCluster, etcd.World](etcd.Planner{}, etcd.Gates(), want, m)
	s.Until(t, lifecycle.OutcomeSettled, "AsDeclared")
	worked := s.Want.DeepCopy()
	s.Hold = func(step lifecycle.Step) []lifecycle.Refusal {
		if step.Intent == lifecycle.IntentRepair || !hold(step) {
			return nil
		}
		return []lifecycle.Refusal{{Gate: "Freeze", Policy: "sale", Message: "frozen"}}
	}
	s.Needed = func(seen etcd.World, step lifecycle.Step) bool {
		before := s.Want.DeepCopy()
		before.Spec = worked.Spec
		next := etcd.Planner{}.Next(before, seen, s.Now).Step
		return next.Name == step.Name && next.Target == step.Target
	}
	return s, m
}

// replaced waits until the member is removed and three others serve.
func replaced(t *testing.T, s *plannertest.Harness[*etcdv1.EtcdCluster, etcd.World], lost string) {
	t.Helper()
	for range 1000 {
		if _, err := s.Turn(); err != nil {
			t.Fatal(err)
		}
		s.Tick()
		members := s.Model.Observe(s.Now).Members
		whole := func(m etcd.Member) bool { return m.Role == etcd.Voter && m.Health == etcd.Healthy && m.Name != lost }
		if len(members) == 3 && !slices.ContainsFunc(members, func(m etcd.Member) bool { return !whole(m) }) {
			return
		}
	}
	var story []string
	for _, step := range s.Steps {
		story = append(story, step.String())
	}
	t.Fatalf("%s is not replaced: %+v after %s", lost, s.Model.Observe(s.Now).Members, strings.Join(story, ", "))
}

// A freeze that holds the growth of volumes does not hold the replacement of a member that has lost its own.
func TestLostMemberIsReplacedWhileVolumeGrowthIsHeld(t *testing.T) {
	s, m := held(t, func(step lifecycle.Step) bool { return step.Name == etcd.GrowVolume })
	s.Want.Spec.Storage.Size = new(resource.MustParse("2Gi"))
	s.Until(t, lifecycle.OutcomeWait, lifecycle.ReasonHeldByPolicy)
	m.LoseVolume("e-1")
	replaced(t, s, "e-1")
	s.Until(t, lifecycle.OutcomeWait, lifecycle.ReasonHeldByPolicy)
	if slices.ContainsFunc(s.Steps, func(step lifecycle.Step) bool { return step.Name == etcd.GrowVolume }) {
		t.Error("a volume has grown in the freeze")
	}
	s.Hold = nil
	s.Until(t, lifecycle.OutcomeSettled, "AsDeclared")
}

// The removal of an unwanted learner waits for its window, and does not delay the replacement of a member.
func TestLostMemberIsReplacedWhileLearnerRemovalIsHeld(t *testing.T) {
	s, m := held(t, func(step lifecycle.Step) bool { return step.Class.IsDisruptive() })
	s.Want.Spec.Size = 4
	s.Until(t, lifecycle.OutcomeWait, "LearnerCatchingUp")
	s.Want.Spec.Size = 3
	s.Until(t, lifecycle.OutcomeWait, lifecycle.ReasonHeldByPolicy)
	m.LoseVolume("e-1")
	replaced(t, s, "e-1")
	s.Until(t, lifecycle.OutcomeSettled, "AsDeclared")
}

// A member whose node does not return is replaced while a change of the spec is held, and not given the change.
func TestLostNodeIsReplacedWhileChangeIsHeld(t *testing.T) {
	for name, lose := range map[string]func(*model.Model, string){"Silent": (*model.Model).LoseNode, "NoOtherNode": (*model.Model).LosePlace} {
		t.Run(name, func(t *testing.T) {
			s, m := held(t, func(step lifecycle.Step) bool { return step.Class.IsDisruptive() })
			s.Want.Spec.Pod.PriorityClassName = "high"
			s.Until(t, lifecycle.OutcomeWait, lifecycle.ReasonHeldByPolicy)
			lose(m, "e-1")
			replaced(t, s, "e-1")
			if slices.ContainsFunc(s.Steps, func(step lifecycle.Step) bool { return step.Name == etcd.Restart }) {
				t.Errorf("a member was restarted: %v", s.Steps)
			}
			s.Hold = nil
			s.Until(t, lifecycle.OutcomeSettled, "AsDeclared")
		})
	}
}
