package fakeapp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
	"github.com/governor-dev/governor/test/fakeapp"
)

func scenario() sim.Scenario[*fakeapp.Ring, fakeapp.World] {
	return sim.Scenario[*fakeapp.Ring, fakeapp.World]{
		Planner: lifecycle.Strict[*fakeapp.Ring, fakeapp.World](fakeapp.Planner{}, fakeapp.Steps()),
		Gates:   []lifecycle.Gate[*fakeapp.Ring, fakeapp.World]{fakeapp.KeepsQuorum},
		Begin: func(rng *rand.Rand) (*fakeapp.Ring, sim.Model[*fakeapp.Ring, fakeapp.World]) {
			r := &fakeapp.Ring{}
			r.Name = "r"
			r.Spec.Size = 1 + rng.IntN(5)
			return r, fakeapp.NewModel()
		},
		Edit: func(want *fakeapp.Ring, rng *rand.Rand) { want.Spec.Size = 1 + rng.IntN(5) },
		Safe: safe,
		Kept: func(want *fakeapp.Ring, seen fakeapp.World) error {
			if len(seen.Members) != want.Spec.Size {
				return fmt.Errorf("%d members, wanted %d", len(seen.Members), want.Spec.Size)
			}
			return nil
		},
	}
}

// safe checks the invariants. With two or more voters, a majority of them is healthy.
// There are never two learners.
func safe(seen fakeapp.World) error {
	learners, voters := 0, 0
	for _, m := range seen.Members {
		switch {
		case m.Listed && m.Voter:
			voters++
		case m.Listed:
			learners++
		}
	}
	if voters > 1 && fakeapp.KeepsQuorum.Violation(nil, seen) > 0 {
		return errors.New("the quorum is lost")
	}
	if learners > 1 {
		return errors.New("two learners at once")
	}
	return nil
}

func TestScenario(t *testing.T) { sim.RunSeeds(t, scenario(), 2000) }

func TestSameSeedGivesSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if diff := cmp.Diff(sim.Run(scenario(), seed).Transcript, sim.Run(scenario(), seed).Transcript); diff != "" {
			t.Fatalf("seed %d gave two different runs: %s", seed, diff)
		}
	}
}

// without is the planner without one rule, to check that the simulator detects it.
type without struct {
	fakeapp.Planner
	reason string
}

func (p without) Next(want *fakeapp.Ring, seen fakeapp.World, now time.Time) lifecycle.Decision {
	d := p.Planner.Next(want, seen, now)
	if d.Reason == p.reason {
		return lifecycle.Settled("RuleDisabled", "")
	}
	return d
}

func TestSimulatorDetectsMissingRules(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*sim.Scenario[*fakeapp.Ring, fakeapp.World])
		want   string
	}{
		"NoRuleForIncompleteStep": {
			"a rule must complete a step after a crash between the two systems",
			func(l *sim.Scenario[*fakeapp.Ring, fakeapp.World]) { l.Planner = without{reason: "MemberWithoutPod"} },
			"settled, but",
		},
		"NoRepair": {
			"a lost member must be replaced",
			func(l *sim.Scenario[*fakeapp.Ring, fakeapp.World]) { l.Planner = without{reason: "MemberLost"} },
			"settled, but",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := scenario()
			c.edit(&l)
			l.Kept = allHealthy
			var errs []string
			for seed := uint64(1); seed <= 100; seed++ {
				if err := sim.Run(l, seed).Err; err != nil {
					errs = append(errs, err.Error())
				}
			}
			if !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, c.want) }) {
				t.Errorf("%s, and 100 runs did not detect it: %q", c.reason, errs)
			}
		})
	}
}

func allHealthy(_ *fakeapp.Ring, seen fakeapp.World) error {
	for _, m := range seen.Members {
		if !m.Listed || m.Pod != fakeapp.Healthy {
			return fmt.Errorf("%+v", m)
		}
	}
	return nil
}
