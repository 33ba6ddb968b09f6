package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
	"github.com/governor-dev/governor/lifecycle/preview"
)

func plan(want *etcdv1.EtcdCluster, seen etcd.World) preview.Plan {
	p, _, _ := preview.Simulator[*etcdv1.EtcdCluster, etcd.World]{Planner: etcd.Planner{}, Gates: etcd.Gates(), Impact: etcd.Planner{}.Impact}.Unroll(want, seen, noon)
	return p
}

// steps is a short form of a plan.
func steps(want *etcdv1.EtcdCluster, seen etcd.World) string {
	return plannertest.Subject[*etcdv1.EtcdCluster, etcd.World]{Planner: etcd.Planner{}, Gates: etcd.Gates(), Impact: etcd.Planner{}.Impact, Now: noon}.Preview(want, seen)
}

// Held changes wait, and repairs do not: the plan lists them in the order of execution.
func TestPreviewOfRepairBehindHeldChange(t *testing.T) {
	planner := etcd.Planner{}
	subject := preview.Simulator[*etcdv1.EtcdCluster, etcd.World]{
		Planner: planner, Gates: etcd.Gates(),
		Holds: func(_ *etcdv1.EtcdCluster, _ etcd.World, s lifecycle.Step) bool { return s.Name == etcd.GrowVolume },
		Needed: func(_ *etcdv1.EtcdCluster, seen etcd.World, s lifecycle.Step) bool {
			return planner.Next(wanted(3), seen, noon).Step.Name == s.Name
		},
	}
	p, _, _ := subject.Unroll(enlarged(), serving(3).with("e-1", lost).World, noon)
	var got []string
	for _, s := range p.Actions() {
		got = append(got, s.String())
	}
	want := []string{"RemoveMember e-1", "DeleteMember e-1", "AddLearner e-3", "StartMember e-3", "GrowVolume e-0"}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
		t.Error(diff)
	}
}

func TestPreview(t *testing.T) {
	older := serving(3)
	for _, m := range older.Members {
		older = older.with(m.Name, func(m *etcd.Member) { m.Version, m.Set.Version, m.Pod.Version = "3.5.35", "3.5.35", "3.5.35" })
	}
	sickly := serving(3).with("e-2", down(0))
	size := resource.MustParse("8Gi")
	young := &etcdv1.EtcdCluster{Spec: etcdv1.EtcdClusterSpec{Size: 1, Storage: etcdv1.StorageSpec{Size: &size}}}
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   etcd.World
		plan   string
	}{
		"Nothing": {"a settled cluster has no plan", wanted(3), serving(3).World, "Settled AsDeclared"},
		"Create": {"a new cluster starts all members at once", young, etcd.World{},
			"FormCluster\n(Formed)\nSettled AsDeclared"},
		"Grow": {"one learner after the other", resized(5), serving(3).World, strings.Join([]string{
			"AddLearner e-3", "StartMember e-3", "(CaughtUp e-3)", "Promote e-3", "AddToService e-3",
			"AddLearner e-4", "StartMember e-4", "(CaughtUp e-4)", "Promote e-4", "AddToService e-4", "Settled AsDeclared",
		}, "\n")},
		"Shrink": {"the newest is removed", resized(2), serving(3).World, strings.Join([]string{
			"RemoveMember e-2: 2 of 2 voters serve, none may fail", "DeleteMember e-2: 2 of 2 voters serve, none may fail", "Settled AsDeclared",
		}, "\n")},
		"Upgrade": {"followers first, the leadership moves before the leader restarts", wanted(3), older.World, strings.Join([]string{
			"Restart e-1: 2 of 3 voters serve, none may fail", "(Serving e-1)",
			"Restart e-2: 2 of 3 voters serve, none may fail", "(Serving e-2)",
			"MoveLeader e-1: 3 of 3 voters serve, 1 member may fail",
			"Restart e-0: 2 of 3 voters serve, none may fail", "(Serving e-0)", "Settled AsDeclared",
		}, "\n")},
		"Wait":   {"a plan continues after a wait", resized(4), sickly.World, "(Serving e-2)\nAddLearner e-3\nStartMember e-3\n(CaughtUp e-3)\nPromote e-3\nAddToService e-3\nSettled AsDeclared"},
		"Lost":   {"a cluster with lost data has no plan", told(wanted(3), serving(3)), serving(3).silent().with("e-0", lost).with("e-1", lost).World, "Blocked QuorumLost"},
		"Delete": {"a deletion reports what cannot be undone", deleted(wanted(1)), etcd.World{Members: serving(1).Members}, "DeleteCluster e\nSettled MembersDeleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.plan, steps(c.want, c.seen)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// hasty is a planner that removes a required member.
type hasty struct{ etcd.Planner }

func (hasty) Next(*etcdv1.EtcdCluster, etcd.World, time.Time) lifecycle.Decision {
	return lifecycle.Proceed(lifecycle.Step{Name: etcd.RemoveMember, Target: "e-0", Class: lifecycle.ClassDisruptive, Reason: "Whim"})
}

func TestPreviewNamesRefusingGate(t *testing.T) {
	// Only a faulty planner takes this step: the engine's gates apply to a plan too.
	reckless := preview.Simulator[*etcdv1.EtcdCluster, etcd.World]{Planner: hasty{}, Gates: etcd.Gates()}
	p, _, _ := reckless.Unroll(wanted(3), serving(3).with("e-2", down(0)).World, noon)
	if len(p.Steps) != 1 || len(p.Steps[0].Held) != 1 || p.Steps[0].Held[0].Gate != "KeepsQuorum" || p.Outcome != lifecycle.OutcomeWait {
		t.Errorf("got %+v", p)
	}
}

// Every world that etcd can be in has a plan that ends.
func TestPreviewEnds(t *testing.T) {
	smallWorlds(letters+byHand, 3, func(code string) {
		for size := int32(1); size <= 3; size++ {
			seen := world(code)
			want := told(wanted(size), seen)
			if p := plan(want, seen.World); p.Reason == "NonTerminating" || p.Outcome == lifecycle.OutcomeProceed {
				t.Errorf("%s to %d: %s", code, size, steps(want, seen.World))
			}
		}
	})
}
