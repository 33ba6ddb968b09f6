package ring_test

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
	"github.com/governor-dev/governor/test/ring"
)

func life() sim.Life[*ring.Ring, ring.World] {
	return sim.Life[*ring.Ring, ring.World]{
		Planner: ring.Planner{},
		Gates:   []lifecycle.Gate[ring.World]{ring.KeepsQuorum},
		Begin: func(chance *rand.Rand) (*ring.Ring, sim.Model[*ring.Ring, ring.World]) {
			r := &ring.Ring{}
			r.Name = "r"
			r.Spec.Size = 1 + chance.IntN(5)
			return r, ring.NewModel()
		},
		Edit: func(want *ring.Ring, chance *rand.Rand) { want.Spec.Size = 1 + chance.IntN(5) },
		Safe: safe,
		Kept: func(want *ring.Ring, seen ring.World) error {
			if len(seen.Members) != want.Spec.Size {
				return fmt.Errorf("%d members, wanted %d", len(seen.Members), want.Spec.Size)
			}
			return nil
		},
	}
}

// safe: once there is a second voter, a majority of the voters is healthy, and
// never are there two learners.
func safe(seen ring.World) error {
	learners, voters := 0, 0
	for _, m := range seen.Members {
		switch {
		case m.Listed && m.Voter:
			voters++
		case m.Listed:
			learners++
		}
	}
	if voters > 1 && ring.KeepsQuorum.Harm(seen) > 0 {
		return errors.New("the quorum is lost")
	}
	if learners > 1 {
		return errors.New("two learners at once")
	}
	return nil
}

func TestLives(t *testing.T) { sim.Lives(t, life(), 2000) }

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
	ring.Planner
	reason string
}

func (p without) Next(want *ring.Ring, seen ring.World, now time.Time) lifecycle.Decision {
	d := p.Planner.Next(want, seen, now)
	if d.Reason == p.reason {
		return lifecycle.Settled("Careless", "")
	}
	return d
}

func TestTheSimulatorFindsWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		reason string
		spoil  func(*sim.Life[*ring.Ring, ring.World])
		want   string
	}{
		"NoRuleForHalfDone": {
			"a crash between the two systems must be finished by a rule",
			func(l *sim.Life[*ring.Ring, ring.World]) { l.Planner = without{reason: "MemberWithoutPod"} },
			"settled, but",
		},
		"NoRepair": {
			"a lost member must be replaced",
			func(l *sim.Life[*ring.Ring, ring.World]) { l.Planner = without{reason: "MemberLost"} },
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

func allHealthy(_ *ring.Ring, seen ring.World) error {
	for _, m := range seen.Members {
		if !m.Listed || m.Pod != ring.Healthy {
			return fmt.Errorf("%+v", m)
		}
	}
	return nil
}
