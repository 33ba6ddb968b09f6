package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/apps/podset/contract"
	"github.com/governor-dev/governor/apps/podset/model"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

func set() *appv1.PodSet {
	p := &appv1.PodSet{}
	p.Name, p.Namespace, p.UID, p.Generation = contract.Set, "ns", "set", 1
	return p
}

func scenario() sim.Scenario[*appv1.PodSet, podset.World] {
	return sim.Scenario[*appv1.PodSet, podset.World]{
		Planner: lifecycle.Strict[*appv1.PodSet, podset.World](podset.Planner{}, podset.Steps()), Gates: podset.Gates(),
		Begin: func(rng *rand.Rand) (*appv1.PodSet, sim.Model[*appv1.PodSet, podset.World]) {
			p := set()
			p.Spec.Replicas = int32(rng.IntN(6))
			return p, model.New()
		},
		Edit: func(want *appv1.PodSet, rng *rand.Rand) {
			want.Spec.Replicas = int32(rng.IntN(6))
			want.Spec.Template.Metadata.Labels = map[string]string{"edit": fmt.Sprint(rng.IntN(3))}
		},
		Kept:          kept,
		ConvergeTicks: 900, // the backoff of a pod that finishes repeatedly is five minutes
	}
}

func kept(want *appv1.PodSet, seen podset.World) error {
	podset.Planner{}.Status(want, seen)
	s, n := want.Status, want.Spec.Replicas
	if s.Replicas != n || s.AvailableReplicas != n || s.UpdatedReplicas != n {
		return fmt.Errorf("of %d pods %d exist, %d are available, %d are updated", n, s.Replicas, s.AvailableReplicas, s.UpdatedReplicas)
	}
	if strays := seen.Strays(); len(strays) > 0 {
		return fmt.Errorf("the set still owns %v, which do not match its labels", strays)
	}
	return nil
}

func TestScenario(t *testing.T) { sim.RunSeeds(t, scenario(), 1000) }

// system runs the planner on the model, in simulated time.
type system struct {
	*model.Model
	want *appv1.PodSet
	now  time.Time
	rng  *rand.Rand
}

func newSystem(*testing.T) contract.System {
	return &system{Model: model.New(), want: set(), now: time.Unix(1e9, 0), rng: rand.New(rand.NewPCG(1, 2))}
}

func (s *system) Apply(_ *testing.T, edit func(*appv1.PodSetSpec)) { edit(&s.want.Spec) }

func (s *system) Put(_ *testing.T, name string, matching bool) { s.Model.Put(name, matching) }
func (s *system) Hand(_ *testing.T, name string)               { s.Model.Hand(name) }
func (s *system) Strip(_ *testing.T, name string)              { s.Model.Strip(name) }
func (s *system) End(_ *testing.T, name string)                { s.Model.End(name) }
func (s *system) Lose(_ *testing.T, name string)               { s.Model.Lose(name) }
func (s *system) Owners(*testing.T) map[string]bool            { return s.Model.Owners() }

func (s *system) Tells(*testing.T) *appv1.PodSet { return s.want }

func (s *system) Until(t *testing.T, what string, holds func() error) {
	t.Helper()
	err := holds()
	for range 200 {
		if err == nil {
			return
		}
		s.pass(t)
		err = holds()
	}
	t.Fatalf("%s: %v", what, err)
}

func (s *system) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *appv1.PodSet {
	t.Helper()
	var d lifecycle.Decision
	for range 200 {
		if d = s.pass(t); d.Outcome == outcome && d.Reason == reason {
			return s.want
		}
	}
	t.Fatalf("still %s, want %s %s", d, outcome, reason)
	return nil
}

// pass advances the time by one second and runs one reconcile.
func (s *system) pass(t *testing.T) lifecycle.Decision {
	t.Helper()
	s.now = s.now.Add(time.Second)
	s.Tick(s.now, s.rng)
	p := podset.Planner{}
	if err := s.Provide(s.want, nil, sim.NoFaults()); err != nil {
		t.Fatal(err)
	}
	seen := s.Observe(s.now)
	d := p.Next(s.want, seen, s.now)
	if d.Outcome == lifecycle.OutcomeProceed && !s.want.IsPaused() {
		if err := s.Act(s.want, seen, d.Step, sim.NoFaults()); err != nil {
			t.Fatal(err)
		}
	}
	p.Status(s.want, seen)
	return d
}

func TestContract(t *testing.T) { contract.Run(t, newSystem) }
