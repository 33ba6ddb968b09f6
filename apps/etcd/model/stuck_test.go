package model_test

import (
	"testing"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/model"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
)

// The API server refuses for ever to repair one member. Another one, which has lost its volume, is
// replaced all the same, also if it has the same fault first.
func TestLostMemberIsReplacedPastARefusedStep(t *testing.T) {
	cases := map[string]struct {
		breaks func(m *model.Model, member string)
		step   string
	}{
		"Pod":   {(*model.Model).StripPod, etcd.LabelPod},
		"Claim": {(*model.Model).StripClaim, etcd.LabelVolume},
		"Set":   {(*model.Model).EditSet, etcd.RestoreStatefulSet},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, m := held(t, func(lifecycle.Step) bool { return false })
			s.Needed = func(_ etcd.World, step lifecycle.Step) bool { return !step.Class.IsDisruptive() } // the spec has settled
			s.Refuse = func(step lifecycle.Step) bool { return step.Name == c.step && step.Target == "e-0" }
			c.breaks(m, "e-0")
			s.Until(t, lifecycle.OutcomeBlocked, plannertest.Refused)
			c.breaks(m, "e-2")
			m.LoseVolume("e-2")
			replaced(t, s, "e-2")
			s.Until(t, lifecycle.OutcomeBlocked, plannertest.Refused)
			s.Refuse = nil
			s.Until(t, lifecycle.OutcomeSettled, "AsDeclared")
		})
	}
}
