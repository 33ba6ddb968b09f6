package model_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/model"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// upgrades are the versions of a cluster, in upgrade order.
var upgrades = []string{"3.4.23", "3.5.21", "3.5.35", "3.6.16", "3.7"}

func cluster(rng *rand.Rand) *etcdv1.EtcdCluster {
	c := &etcdv1.EtcdCluster{}
	c.Name, c.Namespace, c.UID = "e", "ns", "b6b1a3a0"
	size := resource.MustParse("1Gi")
	c.Spec.Size, c.Spec.Storage.Size = 1+2*int32(rng.IntN(3)), &size
	c.Spec.TLS.Mode = etcdv1.TLSModeDisabled
	c.Spec.Version = upgrades[rng.IntN(2)]
	if rng.IntN(2) == 0 {
		c.Spec.Rebalance = etcdv1.RebalanceAutomatic
	}
	if rng.IntN(4) == 0 {
		c.Spec.Storage.Medium = etcdv1.MediumMemory
	} else if rng.IntN(2) == 0 {
		c.Spec.Storage.Retention = etcdv1.RetentionDelete
	}
	return c
}

// edit changes the size, the version, the pods or the volumes.
func edit(want *etcdv1.EtcdCluster, rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0:
		for i, v := range upgrades[:len(upgrades)-1] {
			if v == want.Spec.Version {
				want.Spec.Version = upgrades[i+1]
				return
			}
		}
	case 1:
		want.Spec.Pod.PriorityClassName = fmt.Sprintf("class-%d", rng.IntN(3))
	case 2:
		if want.Spec.Storage.Medium != etcdv1.MediumMemory {
			size := want.Spec.Storage.Size.DeepCopy()
			size.Add(resource.MustParse("1Gi"))
			want.Spec.Storage.Size = &size
			want.Spec.Storage.Retention = []etcdv1.Retention{etcdv1.RetentionDelete, etcdv1.RetentionRetain}[rng.IntN(2)]
		}
	default:
		want.Spec.Size = []int32{1, 2, 3, 3, 4, 5, 7}[rng.IntN(7)]
	}
}

// kept checks that a settled cluster has exactly the wanted members, with their data and the wanted
// version, with disabled bootstrap ConfigMaps, and no other objects.
func kept(want *etcdv1.EtcdCluster, seen etcd.World) error {
	seen.Members = slices.DeleteFunc(slices.Clone(seen.Members), func(m etcd.Member) bool { return etcd.KeptVolume(seen, m) })
	if len(seen.Members) != int(want.Spec.Size) || !seen.Listed {
		return fmt.Errorf("%d members, wanted %d: %+v", len(seen.Members), want.Spec.Size, seen.Members)
	}
	for _, m := range seen.Members {
		whole := m.Role == etcd.Voter && m.Set.Exists && m.Volume.Exists && m.Pod.Ready && m.Health == etcd.Healthy
		if !whole || m.Bootstrap != etcd.BootstrapDisabled || m.Pod.Revision != etcd.Revision(want) || m.Version != want.Status.Version.Target {
			return fmt.Errorf("%s is not as wanted: %+v", m.Name, m)
		}
		if want.Spec.Storage.Medium != etcdv1.MediumMemory && m.Volume.Size != want.Spec.Storage.Size.Value() {
			return fmt.Errorf("the volume of %s has %d bytes", m.Name, m.Volume.Size)
		}
		if m.Volume.Owned == etcd.Retains(want) && want.Spec.Storage.Medium != etcdv1.MediumMemory {
			return fmt.Errorf("the volume of %s is owned: %t", m.Name, m.Volume.Owned)
		}
	}
	return nil
}

func life() sim.Scenario[*etcdv1.EtcdCluster, etcd.World] {
	return sim.Scenario[*etcdv1.EtcdCluster, etcd.World]{
		Planner: lifecycle.Strict[*etcdv1.EtcdCluster, etcd.World](etcd.Planner{}, etcd.Steps()),
		Gates:   etcd.Gates(),
		Begin: func(rng *rand.Rand) (*etcdv1.EtcdCluster, sim.Model[*etcdv1.EtcdCluster, etcd.World]) {
			c := cluster(rng)
			return c, model.New(c.Spec.Storage.Medium == etcdv1.MediumMemory)
		},
		Edit: edit, Kept: kept, FaultTicks: 150, ConvergeTicks: 1500,
	}
}

// TestScenarios simulates ten thousand runs, or fewer with -short.
func TestScenarios(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 500
	}
	began := time.Now()
	sim.RunSeeds(t, life(), count)
	t.Logf("%d lives in %s", count, time.Since(began).Round(time.Second))
}

func TestSameSeedGivesSameResult(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if diff := cmp.Diff(sim.Run(life(), seed).Transcript, sim.Run(life(), seed).Transcript); diff != "" {
			t.Fatalf("seed %d lived two lives: %s", seed, diff)
		}
	}
}

// Runs from 3.3: members join as voters, until an upgrade permits learners.
func TestScenariosBeforeLearners(t *testing.T) {
	l := life()
	begin := l.Begin
	l.Begin = func(rng *rand.Rand) (*etcdv1.EtcdCluster, sim.Model[*etcdv1.EtcdCluster, etcd.World]) {
		c, m := begin(rng)
		c.Spec.Size, c.Spec.Version = 3, "3.3.25"
		return c, m
	}
	l.Edit = func(want *etcdv1.EtcdCluster, rng *rand.Rand) {
		want.Spec.Size = 2 + int32(rng.IntN(4))
		if rng.IntN(8) == 0 {
			want.Spec.Version = "3.4.23"
		}
	}
	sim.RunSeeds(t, l, 300)
}

// A cluster that is deleted at any time, with any faults, leaves only the retained volumes, and those of users.
func TestScenariosWithDeletion(t *testing.T) {
	l := life()
	l.Edit = func(want *etcdv1.EtcdCluster, rng *rand.Rand) {
		if want.DeletionTimestamp != nil {
			return // it may be deleted already
		}
		if edit(want, rng); rng.IntN(2) == 0 {
			want.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
	}
	l.Kept = func(want *etcdv1.EtcdCluster, seen etcd.World) error {
		if want.DeletionTimestamp == nil {
			return kept(want, seen)
		}
		for _, m := range seen.Members {
			left := m.Pod.Exists && !m.Set.Exists && (etcd.Volatile(want) || m.Volume.Terminating) // it was orphaned before
			if m.Set.Exists || m.Volume.Exists && !m.Volume.Restored && !etcd.Retains(want) && !left {
				return fmt.Errorf("%s is left: %+v", m.Name, m)
			}
		}
		return nil
	}
	sim.RunSeeds(t, l, 1000)
}

// TestScenariosWithLostStatus: a client deletes status.bootstrap, as a backup does that restores objects without
// their status, also while the members form the cluster.
func TestScenariosWithLostStatus(t *testing.T) {
	l := life()
	l.Edit = func(want *etcdv1.EtcdCluster, rng *rand.Rand) {
		if want.Status.Bootstrap != nil && rng.IntN(4) == 0 {
			want.Status.Bootstrap, want.Status.Members = nil, nil
			return
		}
		edit(want, rng)
	}
	sim.RunSeeds(t, l, 500)
}

// TestScenariosThatReportDrift: drift that may stay delays no repair and no change.
func TestScenariosThatReportDrift(t *testing.T) {
	l := life()
	l.ReportsDrift = true
	sim.RunSeeds(t, l, 200)
}

// system runs the planner on the model without faults.
type system struct {
	want  *etcdv1.EtcdCluster
	model *model.Model
	now   time.Time
	rng   *rand.Rand
	steps []lifecycle.Step
}

func newSystem(size int32) *system {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &system{want: cluster(rng), model: model.New(false), now: time.Unix(0, 0), rng: rng}
	s.want.Spec.Size, s.want.Spec.Version, s.want.Spec.Storage.Medium = size, "3.6", ""
	s.want.Spec.Rebalance = ""
	return s
}

func (s *system) turn(t *testing.T) lifecycle.Decision {
	t.Helper()
	s.now = s.now.Add(time.Second)
	s.model.Tick(s.now, s.rng)
	p, seen := etcd.Planner{}, s.model.Observe(s.now)
	resources, err := p.Resources(s.want, seen)
	if err == nil && !s.want.Spec.Paused {
		err = s.model.Provide(s.want, resources, sim.NoFaults())
	}
	d := p.Next(s.want, seen, s.now)
	if err == nil && d.Outcome == lifecycle.OutcomeProceed && !s.want.Spec.Paused {
		s.steps = append(s.steps, d.Step)
		err = s.model.Act(s.want, seen, d.Step, sim.NoFaults())
	}
	if err == nil {
		err = s.model.Safe()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Status(s.want, seen)
	return d
}

func (s *system) settles(t *testing.T, outcome lifecycle.Outcome, reason string) {
	t.Helper()
	var d lifecycle.Decision
	for range 1000 {
		if d = s.turn(t); d.Outcome == outcome && d.Reason == reason {
			return
		}
	}
	t.Fatalf("still %s, want %s %s", d, outcome, reason)
}

// When too many volumes are lost, the status reports it and nothing changes, however long it lasts;
// a restored volume is enough to recover.
func TestLostData(t *testing.T) {
	for lost := 1; lost <= 3; lost++ {
		t.Run(fmt.Sprintf("%d of 3", lost), func(t *testing.T) {
			s := newSystem(3)
			s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
			for i := range lost {
				s.model.LoseVolume(fmt.Sprintf("e-%d", i))
			}
			if lost == 1 {
				s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
				return
			}
			s.settles(t, lifecycle.OutcomeBlocked, "QuorumLost")
			before := len(s.steps)
			for range 1000 {
				s.turn(t)
			}
			if len(s.steps) != before {
				t.Errorf("after the loss the operator did %v", s.steps[before:])
			}
		})
	}
}

// A client deletes the status while the members form the cluster. The bootstrap ConfigMaps have
// the initial members, and the cluster forms, also if the size was changed since.
func TestStatusLostWhileForming(t *testing.T) {
	for _, size := range []int32{3, 1, 5} {
		t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
			s := newSystem(3)
			for len(s.steps) == 0 {
				s.turn(t)
			}
			s.want.Status = etcdv1.EtcdClusterStatus{}
			s.want.Spec.Size = size
			s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
			if m := s.want.Status.Bootstrap; len(m.InitialMembers) != 3 || !m.Formed {
				t.Errorf("status.bootstrap is %+v", m)
			}
		})
	}
}

// Steps of common changes, in their order.
func TestStepsOfCommonChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		size   int32
		edit   func(*etcdv1.EtcdCluster)
		want   []string
	}{
		"Grow": {"one learner at a time", 1, func(c *etcdv1.EtcdCluster) { c.Spec.Size = 2 },
			[]string{"AddLearner e-1", "StartMember e-1", "Promote e-1", "AddToService e-1"}},
		"Shrink": {"etcd changes first", 3, func(c *etcdv1.EtcdCluster) { c.Spec.Size = 2 },
			[]string{"RemoveMember", "DeleteMember"}},
		"Upgrade": {"followers first, then the leader, moved away", 3, func(c *etcdv1.EtcdCluster) { c.Spec.Version = "3.7" },
			[]string{"StartTrial", "Restart", "DeleteTrial", "Restart", "MoveLeader", "Restart"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSystem(c.size)
			s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
			s.steps = nil
			c.edit(s.want)
			s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
			var got []string
			for i, step := range s.steps {
				if i < len(c.want) && strings.Contains(c.want[i], " ") {
					got = append(got, step.String())
				} else {
					got = append(got, step.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
