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

// freezeEnd is the end of the freeze, while faults occur in every run.
var freezeEnd = time.Unix(1_700_000_000+120, 0)

// testPolicies returns policies that select rings by a label, so that runs differ in their
// policies. They are a window every second minute, a freeze, repairs that are held too, or
// all of them.
func testPolicies() policy.Set {
	minutes := []v1alpha1.Window{{Schedule: "*/2 * * * *", Duration: metav1.Duration{Duration: time.Minute}}}
	freeze := &v1alpha1.Freeze{Reason: "sale", Until: new(metav1.NewTime(freezeEnd))}
	rule := func(name string, spec v1alpha1.OperationPolicySpec) v1alpha1.OperationPolicy {
		spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}
		return v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return policy.NewSet([]v1alpha1.OperationPolicy{
		rule("minutes", v1alpha1.OperationPolicySpec{Windows: minutes}),
		rule("freeze", v1alpha1.OperationPolicySpec{Freeze: freeze}),
		rule("strict", v1alpha1.OperationPolicySpec{Windows: minutes, RepairPolicy: v1alpha1.RepairPolicyHold}),
	})
}

// policyChecker is a ring that records violations of the policies. It checks them against its
// own calendar.
type policyChecker struct {
	sim.Model[*fakeapp.Ring, fakeapp.World]
	now        time.Time
	violations []error
}

func (w *policyChecker) Observe(now time.Time) fakeapp.World {
	w.now = now
	return w.Model.Observe(now)
}

func (w *policyChecker) Act(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step, fx *sim.Effects) error {
	closed, frozen := w.now.Minute()%2 == 1, w.now.Before(freezeEnd)
	change := s.Intent != lifecycle.IntentRepair
	switch {
	case s.Class == lifecycle.ClassRoutine:
	case want.Labels["minutes"] == "yes" && closed && change, want.Labels["strict"] == "yes" && closed:
		w.violations = append(w.violations, errors.New(s.String()+" outside of the window, at "+w.now.String()))
	case want.Labels["freeze"] == "yes" && frozen && change:
		w.violations = append(w.violations, errors.New(s.String()+" in the freeze, at "+w.now.String()))
	}
	return w.Model.Act(want, seen, s, fx)
}

func (w *policyChecker) Safe() error { return errors.Join(w.violations...) }

// Gates that depend on the time never let a held step pass. Once they open, nothing stays
// undone.
func TestScenarioWithPolicies(t *testing.T) {
	all := testPolicies()
	l := scenarioWithPolicies(all)
	var held atomic.Int64
	l.Hold = func(want *fakeapp.Ring, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
		about := policy.Object{Kind: "Ring", Name: want.Name, Labels: want.Labels}
		v := all.Selecting(about).Judge(policy.Question{Object: about, Step: s, Now: now})
		held.Add(int64(len(v.Refusals)))
		return v.Refusals
	}
	sim.RunSeeds(t, l, 1000)
	if held.Load() == 0 {
		t.Error("no step was held in any run")
	}
}

// Without policies a few runs violate the calendar. This proves that the test above can
// detect violations.
func TestPolicyCheckerDetectsViolations(t *testing.T) {
	l := scenarioWithPolicies(testPolicies())
	for seed := uint64(1); seed <= 50; seed++ {
		if sim.Run(l, seed).Err != nil {
			return
		}
	}
	t.Error("50 runs without a violation")
}

// scenarioWithPolicies returns the scenario of a ring that some of the policies select.
func scenarioWithPolicies(all policy.Set) sim.Scenario[*fakeapp.Ring, fakeapp.World] {
	l := scenario()
	l.ConvergeTicks = 600
	begin := l.Begin
	l.Begin = func(rng *rand.Rand) (*fakeapp.Ring, sim.Model[*fakeapp.Ring, fakeapp.World]) {
		r, model := begin(rng)
		r.Labels = map[string]string{}
		for _, name := range all.Names() {
			if rng.IntN(2) == 0 {
				r.Labels[name] = "yes"
			}
		}
		return r, &policyChecker{Model: model}
	}
	return l
}
