package model_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
	"github.com/governor-dev/governor/lifecycle/sim"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/candy"
	"awesome.corp.com/chocolate-factory/candy/contract"
	"awesome.corp.com/chocolate-factory/candy/driver"
	"awesome.corp.com/chocolate-factory/candy/model"
	"awesome.corp.com/chocolate-factory/machine"
	"awesome.corp.com/chocolate-factory/machine/server"
)

var flavors = []string{"bitter", "dark", "milk", "sweet", "sweeeeeeet"}

func life() sim.Scenario[*v1.Candy, candy.World] {
	return sim.Scenario[*v1.Candy, candy.World]{
		Planner: lifecycle.Strict[*v1.Candy, candy.World](candy.Planner{}, candy.Steps()), Gates: candy.Gates(),
		Begin: func(chance *rand.Rand) (*v1.Candy, sim.Model[*v1.Candy, candy.World]) {
			return &v1.Candy{Spec: v1.CandySpec{Flavor: flavors[chance.IntN(5)], Attempts: 1000}}, model.New(chance)
		},
		Edit: func(want *v1.Candy, chance *rand.Rand) { want.Spec.Flavor = flavors[chance.IntN(5)] },
		Kept: func(want *v1.Candy, _ candy.World) error {
			if d := want.Status.Delivered; d == nil || d.Flavor != want.Spec.Flavor {
				return fmt.Errorf("%s is wanted, and the status is %+v", want.Spec.Flavor, want.Status)
			}
			return nil
		},
		ConvergeTicks: 900, // the machine's clock may be ten minutes ahead of the operator's
	}
}

func TestScenarios(t *testing.T) { sim.RunSeeds(t, life(), 2000) }

// Whenever a candy is deleted, in whatever weather, it goes, and the machine is free or forgets it.
func TestScenariosWithDeletion(t *testing.T) {
	l := life()
	l.Edit = func(want *v1.Candy, _ *rand.Rand) {
		if want.DeletionTimestamp == nil {
			want.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_700_000_100, 0)}
		}
	}
	l.Kept = func(want *v1.Candy, seen candy.World) error {
		if want.DeletionTimestamp != nil && seen.Answers && seen.Job != nil {
			return errors.New("the machine has the job still")
		}
		return nil
	}
	sim.RunSeeds(t, l, 500)
}

// The model cannot predict the sweetness or the number of a bar, only that it exists, is measured or is gone.
func TestEffects(t *testing.T) {
	plannertest.Effects(t, plannertest.ModelCheck[*v1.Candy, candy.World]{Scenario: life(), Normalize: func(seen candy.World, s lifecycle.Step) any {
		if seen.Job == nil || s.Name == "MachineAnswers" {
			return seen.Answers
		}
		type essence struct {
			answers, bar, ready, measured bool
			order                         machine.Order
			made, disposed                int
		}
		j := *seen.Job
		e := essence{answers: seen.Answers, order: j.Order, made: j.Made, disposed: j.Disposed, bar: j.Bar != nil}
		if s.Name != candy.Make && j.Bar != nil { // a fast machine may be done at once
			e.ready, e.measured = j.Bar.Ready, j.Bar.Measured != nil
		}
		return e
	}}, 100)
}

// inMemory is the contract's system on the model.
type inMemory struct {
	*plannertest.Harness[*v1.Candy, candy.World]
	machine *machine.Machine
}

func newInMemory(*testing.T) contract.System {
	m := model.New(rand.New(rand.NewPCG(1, 2)))
	return inMemory{plannertest.Enter(candy.Planner{}, candy.Gates(), &v1.Candy{}, sim.Model[*v1.Candy, candy.World](m)), m.Machine}
}

func (s inMemory) Apply(_ *testing.T, edit func(*v1.CandySpec)) {
	edit(&s.Want.Spec)
	s.Want.Generation++
}
func (s inMemory) Fault(_ *testing.T, f machine.Faults) { s.machine.Faults = f }
func (s inMemory) Forget(*testing.T)                    { s.machine.Forget() }

func (s inMemory) Until(t *testing.T, outcome lifecycle.Outcome, reason string) *v1.Candy {
	t.Helper()
	return s.Harness.Until(t, outcome, reason)
}

func (s inMemory) Delete(t *testing.T, reason string) {
	t.Helper()
	s.Want.DeletionTimestamp = &metav1.Time{Time: s.Now}
	s.Harness.Until(t, lifecycle.OutcomeSettled, reason)
}

func TestContract(t *testing.T) { contract.Run(t, newInMemory) }

// wired is a model whose world goes through the real driver, HTTP and the real server, in logical time.
type wired struct {
	*model.Model
	driver driver.Driver
	now    *time.Time
	t      *testing.T
	want   *v1.Candy
}

func (w wired) Observe(time.Time) candy.World {
	seen, err := w.driver.Observe(w.t.Context(), w.want)
	if err != nil {
		w.t.Fatal(err)
	}
	return seen
}

func (w wired) Act(want *v1.Candy, seen candy.World, s lifecycle.Step, _ *sim.Effects) error {
	want = want.DeepCopyObject().(*v1.Candy)
	want.UID = w.want.UID
	return w.driver.Act(w.t.Context(), want, seen, s)
}

func (w wired) Tick(now time.Time, _ *rand.Rand) { *w.now = now }

func newOverHTTP(t *testing.T) contract.System {
	m := model.New(rand.New(rand.NewPCG(1, 2)))
	now := plannertest.TestTime
	s := httptest.NewServer(server.New(m.Machine, func() time.Time { return now }))
	t.Cleanup(s.Close)
	want := &v1.Candy{}
	want.UID = "7d1c"
	w := wired{Model: m, driver: driver.At(func(*v1.Candy) string { return s.URL }), now: &now, t: t, want: want.DeepCopyObject().(*v1.Candy)}
	return inMemory{plannertest.Enter(candy.Planner{}, candy.Gates(), want, sim.Model[*v1.Candy, candy.World](w)), m.Machine}
}

func TestContractOverHTTP(t *testing.T) { contract.Run(t, newOverHTTP) }
