package ring_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/trial"
	"github.com/governor-dev/governor/test/ring"
)

func subject() trial.Subject[*ring.Ring, ring.World] {
	return trial.Subject[*ring.Ring, ring.World]{
		Planner: ring.Planner{}, Gates: []lifecycle.Gate[ring.World]{ring.KeepsQuorum}, Safe: safe, Kept: life().Kept,
	}
}

func TestEverySmallWorld(t *testing.T) { trial.Worlds(t, subject(), ring.SmallWorlds(4)) }

// The revision is the driver's affair: it is not foretold.
func TestEffects(t *testing.T) {
	trial.Effects(t, trial.Reality[*ring.Ring, ring.World]{
		Life: life(), Essence: func(seen ring.World, _ lifecycle.Step) any { seen.Revision = 0; return seen },
	}, 50)
}

func TestPreview(t *testing.T) {
	want := &ring.Ring{Spec: ring.Spec{Size: 2}}
	plan := "Add m000000\n(CaughtUp m000000)\nAdd m000001\n(CaughtUp m000001)\nPromote m000001\nSettled AsDeclared"
	if diff := cmp.Diff(plan, subject().Preview(want, ring.World{})); diff != "" {
		t.Error(diff)
	}
}
