package fakeapp_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/sim"
	"github.com/governor-dev/governor/test/fakeapp"
)

// thaw is when the freeze ends, in the middle of the storm of every life.
var thaw = time.Unix(1_700_000_000+120, 0)

// rulers are policies that select rings by a label, so that lives differ in them: every
// second minute, a freeze, repairs that are held too, or all of it.
func rulers() policy.Set {
	minutes := []v1alpha1.Window{{Schedule: "*/2 * * * *", Duration: metav1.Duration{Duration: time.Minute}}}
	freeze := &v1alpha1.Freeze{Reason: "sale", Until: new(metav1.NewTime(thaw))}
	rule := func(name string, spec v1alpha1.OperationPolicySpec) v1alpha1.OperationPolicy {
		spec.Selector.Labels = &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}
		return v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return policy.NewSet([]v1alpha1.OperationPolicy{
		rule("minutes", v1alpha1.OperationPolicySpec{Windows: minutes}),
		rule("freeze", v1alpha1.OperationPolicySpec{Freeze: freeze}),
		rule("strict", v1alpha1.OperationPolicySpec{Windows: minutes, Repairs: v1alpha1.RepairsHold}),
	})
}

// watched is a ring of which it is noted when something is done to it that policies
// forbid, by a calendar of its own.
type watched struct {
	sim.Model[*fakeapp.Ring, fakeapp.World]
	now  time.Time
	sins []error
}

func (w *watched) Observe(now time.Time) fakeapp.World {
	w.now = now
	return w.Model.Observe(now)
}

func (w *watched) Act(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step, fx *sim.Effects) error {
	closed, frozen := w.now.Minute()%2 == 1, w.now.Before(thaw)
	wish := s.Intent != lifecycle.IntentRepair
	switch {
	case s.Class == lifecycle.ClassRoutine:
	case want.Labels["minutes"] == "yes" && closed && wish, want.Labels["strict"] == "yes" && closed:
		w.sins = append(w.sins, errors.New(s.String()+" outside of the window, at "+w.now.String()))
	case want.Labels["freeze"] == "yes" && frozen && wish:
		w.sins = append(w.sins, errors.New(s.String()+" in the freeze, at "+w.now.String()))
	}
	return w.Model.Act(want, seen, s, fx)
}

func (w *watched) Safe() error { return errors.Join(w.sins...) }

// Gates that open and close by the clock never let a step pass that they hold, and
// once they open nothing stays undone.
func TestLivesUnderPolicies(t *testing.T) {
	all := rulers()
	l := ruled(all)
	var held atomic.Int64
	l.Hold = func(want *fakeapp.Ring, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
		about := policy.Object{Kind: "Ring", Name: want.Name, Labels: want.Labels}
		v := all.Selecting(about).Judge(policy.Question{Object: about, Step: s, Now: now})
		held.Add(int64(len(v.Refusals)))
		return v.Refusals
	}
	sim.RunSeeds(t, l, 1000)
	if held.Load() == 0 {
		t.Error("no step was held in any life")
	}
}

// Without policies somebody sins in a few lives, or the test above sees nothing.
func TestSinsAreSeen(t *testing.T) {
	l := ruled(rulers())
	for seed := uint64(1); seed <= 50; seed++ {
		if sim.Run(l, seed).Err != nil {
			return
		}
	}
	t.Error("50 lives without a sin")
}

// ruled is a life of a ring that some of the policies select.
func ruled(all policy.Set) sim.Scenario[*fakeapp.Ring, fakeapp.World] {
	l := life()
	l.ConvergeTicks = 600
	begin := l.Begin
	l.Begin = func(chance *rand.Rand) (*fakeapp.Ring, sim.Model[*fakeapp.Ring, fakeapp.World]) {
		r, model := begin(chance)
		r.Labels = map[string]string{}
		for _, name := range all.Names() {
			if chance.IntN(2) == 0 {
				r.Labels[name] = "yes"
			}
		}
		return r, &watched{Model: model}
	}
	return l
}
