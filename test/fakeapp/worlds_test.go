package fakeapp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
	"github.com/governor-dev/governor/test/fakeapp"
)

func subject() plannertest.Subject[*fakeapp.Ring, fakeapp.World] {
	return plannertest.Subject[*fakeapp.Ring, fakeapp.World]{
		Planner: lifecycle.Strict[*fakeapp.Ring, fakeapp.World](fakeapp.Planner{}, fakeapp.Steps()), Gates: []lifecycle.Gate[*fakeapp.Ring, fakeapp.World]{fakeapp.KeepsQuorum}, Safe: safe, Kept: scenario().Kept,
	}
}

func TestEverySmallWorld(t *testing.T) { plannertest.Worlds(t, subject(), fakeapp.SmallWorlds(4)) }

// The driver owns the revision, so it is not predicted.
func TestEffects(t *testing.T) {
	plannertest.Effects(t, plannertest.ModelCheck[*fakeapp.Ring, fakeapp.World]{
		Scenario: scenario(), Normalize: func(seen fakeapp.World, _ lifecycle.Step) any { seen.Revision = 0; return seen },
	}, 50)
}

func TestPreview(t *testing.T) {
	want := &fakeapp.Ring{Spec: fakeapp.Spec{Size: 2}}
	plan := "Add m000000\n(CaughtUp m000000)\nAdd m000001\n(CaughtUp m000001)\nPromote m000001\nSettled AsDeclared"
	if diff := cmp.Diff(plan, subject().Preview(want, fakeapp.World{})); diff != "" {
		t.Error(diff)
	}
}
