package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/apps/memcached/contract"
	"github.com/governor-dev/governor/apps/memcached/model"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
	"github.com/governor-dev/governor/lifecycle/sim"
)

func instance() *cachev1.Memcached {
	m := &cachev1.Memcached{}
	m.Name, m.Namespace, m.Spec.ContainerPort = "m", "ns", 11211
	return m
}

func scenario() sim.Scenario[*cachev1.Memcached, memcached.World] {
	return sim.Scenario[*cachev1.Memcached, memcached.World]{
		Planner: lifecycle.Strict[*cachev1.Memcached, memcached.World](memcached.Planner{}, memcached.Steps()),
		Begin: func(rng *rand.Rand) (*cachev1.Memcached, sim.Model[*cachev1.Memcached, memcached.World]) {
			m := instance()
			m.Spec.Size = int32(rng.IntN(5))
			return m, model.New()
		},
		Edit: func(want *cachev1.Memcached, rng *rand.Rand) {
			want.Spec.Size = int32(rng.IntN(5))
			want.Spec.Version = fmt.Sprintf("1.6.%d", rng.IntN(3))
		},
		Kept: func(want *cachev1.Memcached, seen memcached.World) error {
			memcached.Planner{}.Status(want, seen)
			if want.Status.ReadyReplicas != want.Spec.Size {
				return fmt.Errorf("%d of %d servers answer", want.Status.ReadyReplicas, want.Spec.Size)
			}
			return nil
		},
	}
}

func TestScenario(t *testing.T) { sim.RunSeeds(t, scenario(), 300) }

// Pod names and template digests are not predictable, so they are not compared.
func TestEffects(t *testing.T) {
	l := scenario()
	l.Begin = func(rng *rand.Rand) (*cachev1.Memcached, sim.Model[*cachev1.Memcached, memcached.World]) {
		m := instance()
		m.Spec.Size = int32(rng.IntN(5))
		return m, model.New()
	}
	plannertest.Effects(t, plannertest.ModelCheck[*cachev1.Memcached, memcached.World]{
		Scenario: l, Normalize: func(seen memcached.World, _ lifecycle.Step) any {
			ready := 0
			for _, p := range seen.Pods {
				if p.Ready && !p.Terminating {
					ready++
				}
			}
			seen.Rollout.Template = ""
			return [2]any{seen.Rollout, ready}
		},
	}, 40)
}

// system runs the planner on the model, in simulated time.
type system struct {
	*plannertest.Harness[*cachev1.Memcached, memcached.World]
	model *model.Model
}

func newSystem(*testing.T) contract.System {
	m := model.New()
	m.Withdraw(contract.Missing)
	return system{plannertest.Enter(memcached.Planner{}, nil, instance(), sim.Model[*cachev1.Memcached, memcached.World](m)), m}
}

func (s system) Apply(_ *testing.T, edit func(*cachev1.MemcachedSpec)) { edit(&s.Want.Spec) }

func (s system) LosePod(_ *testing.T, name string) { s.model.Lose(name) }

func (s system) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *cachev1.Memcached {
	t.Helper()
	return s.Until(t, outcome, reason)
}

func TestContract(t *testing.T) { contract.Run(t, newSystem) }
