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

func life() sim.Scenario[*fakeapp.Ring, fakeapp.World] {
	return sim.Scenario[*fakeapp.Ring, fakeapp.World]{
		Planner: fakeapp.Planner{},
		Gates:   []lifecycle.Gate[fakeapp.World]{fakeapp.KeepsQuorum},
		Begin: func(chance *rand.Rand) (*fakeapp.Ring, sim.Model[*fakeapp.Ring, fakeapp.World]) {
			r := &fakeapp.Ring{}
			r.Name = "r"
			r.Spec.Size = 1 + chance.IntN(5)
			return r, fakeapp.NewModel()
		},
		Edit: func(want *fakeapp.Ring, chance *rand.Rand) { want.Spec.Size = 1 + chance.IntN(5) },
		Safe: safe,
		Kept: func(want *fakeapp.Ring, seen fakeapp.World) error {
			if len(seen.Members) != want.Spec.Size {
				return fmt.Errorf("%d members, wanted %d", len(seen.Members), want.Spec.Size)
			}
			return nil
		},
	}
}

// safe: once there is a second voter, a majority of the voters is healthy, and
// never are there two learners.
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
	if voters > 1 && fakeapp.KeepsQuorum.Violation(seen) > 0 {
		return errors.New("the quorum is lost")
	}
	if learners > 1 {
		return errors.New("two learners at once")
	}
	return nil
}

func TestLives(t *testing.T) { sim.RunSeeds(t, life(), 2000) }

func TestTheSameSeedIsTheSameLife(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		if diff := cmp.Diff(sim.Run(life(), seed).Transcript, sim.Run(life(), seed).Transcript); diff != "" {
			t.Fatalf("seed %d lived two lives: %s", seed, diff)
		}
	}
}

// without is the planner with one rule taken away, to see that the simulator
// notices.
type without struct {
	fakeapp.Planner
	reason string
}

func (p without) Next(want *fakeapp.Ring, seen fakeapp.World, now time.Time) lifecycle.Decision {
	d := p.Planner.Next(want, seen, now)
	if d.Reason == p.reason {
		return lifecycle.Settled("Careless", "")
	}
	return d
}

func TestTheSimulatorFindsWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		reason string
		spoil  func(*sim.Scenario[*fakeapp.Ring, fakeapp.World])
		want   string
	}{
		"NoRuleForHalfDone": {
			"a crash between the two systems must be finished by a rule",
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
			l := life()
			c.spoil(&l)
			l.Kept = allHealthy
			var errs []string
			for seed := uint64(1); seed <= 100; seed++ {
				if err := sim.Run(l, seed).Err; err != nil {
					errs = append(errs, err.Error())
				}
			}
			if !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, c.want) }) {
				t.Errorf("%s, and 100 lives did not show it: %q", c.reason, errs)
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
