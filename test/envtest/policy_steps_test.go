package envtest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/test/fakeapp"
)

// tuesday is at noon, days away from the window on Saturday nights.
var tuesday = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func nights(s *v1alpha1.OperationPolicySpec) {
	s.Windows = []v1alpha1.Window{{Schedule: "0 2 * * 6", TimeZone: "Europe/Zurich", Duration: metav1.Duration{Duration: 3 * time.Hour}}}
}

// clocked starts an operator on a Tuesday, with settled rings of three members.
func clocked(t *testing.T, names ...string) (string, *operator, *clocktesting.FakeClock) {
	t.Helper()
	installRings(t)
	namespace, clock := newNamespace(t), clocktesting.NewFakeClock(tuesday)
	op := startOperator(t, namespace, func(_ *ctrl.Options, e *engine.Options) { e.Now = clock.Now })
	for _, name := range names {
		newRing(t, namespace, name, 3)
		ringReaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	return namespace, op, clock
}

// poke triggers a reconcile of a ring that is due by a clock that its timer does not know.
func poke(t *testing.T, namespace, name string) {
	t.Helper()
	relabel(t, namespace, name, "poked", time.Now().Format("150405.000000000"))
}

func relabel(t *testing.T, namespace, name, key, value string) {
	t.Helper()
	r, err := get(t, &fakeapp.Ring{}, namespace, name)
	must(t, err)
	base := r.DeepCopyObject().(*fakeapp.Ring)
	labels := map[string]string{key: value}
	for k, v := range r.Labels {
		if k != key {
			labels[k] = v
		}
	}
	r.Labels = labels
	must(t, api.Patch(t.Context(), r, client.MergeFrom(base)))
}

// ringHeld waits until a policy holds a step of the ring, and the message has all of the
// words.
func ringHeld(t *testing.T, namespace, name string, words ...string) {
	t.Helper()
	eventually(t, "ring "+name+" is held: "+strings.Join(words, ", "), func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, name)
		if err != nil {
			return err
		}
		if err := condition(r.Status.Conditions, lifecycle.ConditionReady, metav1.ConditionFalse, lifecycle.ReasonHeldByPolicy); err != nil {
			return err
		}
		for _, c := range r.Status.Conditions {
			for _, word := range words {
				if c.Type == lifecycle.ConditionReady && !strings.Contains(c.Message, word) {
					return fmt.Errorf("it says %s", c.Message)
				}
			}
		}
		return nil
	})
}

func ringSettles(t *testing.T, namespace, name string, size int) {
	t.Helper()
	eventually(t, fmt.Sprintf("ring %s has %d members", name, size), func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, name)
		if err != nil {
			return err
		}
		if r.Status.ObservedGeneration != r.Generation || len(r.Status.Members) != size {
			return fmt.Errorf("members %v, %v", r.Status.Members, r.Status.Conditions)
		}
		return condition(r.Status.Conditions, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	})
}

func refusals(b history.Log) (all []history.Entry) {
	for _, e := range b.Entries {
		if e.Result == history.ResultRefused {
			all = append(all, e)
		}
	}
	return all
}

func TestWindowHoldsChangesAndLetsRepairsPass(t *testing.T) {
	namespace, op, clock := clocked(t, "r")
	p := newPolicy(t, namespace, "nights", nights)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 4 })
	ringSettles(t, namespace, "r", 4) // a routine step passes
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 3 })
	ringHeld(t, namespace, "r", p.Name, "Remove m000003", "the next opens Sat 2026-11-28 02:00 CET (Europe/Zurich)")
	quiet(t, namespace, op)
	setHealth(t, namespace, "r-m000001", fakeapp.Lost)
	eventually(t, "the lost member is replaced", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil || slices.Contains(r.Status.Members, "m000001") {
			return fmt.Errorf("members %v: %w", r.Status.Members, err)
		}
		return nil
	})
	ringSettles(t, namespace, "r", 3)
	if all := refusals(bookOf(t, namespace, "r")); len(all) != 1 || all[0].HeldBy != p.Name+"/MaintenanceWindow" {
		t.Errorf("a refusal is recorded once: %+v", all)
	}
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringHeld(t, namespace, "r", p.Name)
	clock.SetTime(time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC))
	poke(t, namespace, "r")
	ringSettles(t, namespace, "r", 2)
}

func TestFreezeHoldsUntilRemoved(t *testing.T) {
	namespace, op, _ := clocked(t, "r")
	p := newPolicy(t, namespace, "sale", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "the sale"} })
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringHeld(t, namespace, "r", p.Name, "frozen (the sale)")
	quiet(t, namespace, op)
	until := metav1.NewTime(tuesday.Add(time.Hour))
	changePolicy(t, p, func(s *v1alpha1.OperationPolicySpec) { s.Freeze.Until = &until })
	ringHeld(t, namespace, "r", "until Tue 2026-11-24 13:00 UTC")
	changePolicy(t, p, func(s *v1alpha1.OperationPolicySpec) { s.Freeze = nil })
	ringSettles(t, namespace, "r", 2)
}

// The stricter of two policies wins, and the message names both. A bypass passes both, and
// is recorded.
func TestBypassIsRecorded(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	a := newPolicy(t, namespace, "a", nights)
	b := newPolicy(t, namespace, "b", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "the sale"} })
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringHeld(t, namespace, "r", a.Name, b.Name)
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	base := r.DeepCopyObject().(*fakeapp.Ring)
	r.Annotations = map[string]string{lifecycle.AnnotationBypass: "the disk is full"}
	must(t, api.Patch(t.Context(), r, client.MergeFrom(base), client.FieldOwner("ann")))
	ringSettles(t, namespace, "r", 2)
	last, _ := bookOf(t, namespace, "r").Last()
	if last.Bypass == nil || last.Bypass.Reason != "the disk is full" || last.Bypass.By != "ann" || !slices.Equal(last.Bypass.Policies, []string{a.Name, b.Name}) {
		t.Errorf("the history has %+v", last.Bypass)
	}
	eventually(t, "an event reports it", func() error { return toldNote(t, namespace, `"the disk is full", set by ann`) })
}

func TestPolicyBudgetLimitsConcurrency(t *testing.T) {
	namespace, op, clock := clocked(t, "a", "b", "c")
	for name, zone := range map[string]string{"a": "one", "b": "one", "c": "two"} {
		relabel(t, namespace, name, "zone", zone)
	}
	p := newPolicy(t, namespace, "pace", func(s *v1alpha1.OperationPolicySpec) {
		s.Budget = &v1alpha1.Budget{MaxDisrupted: 1, Scope: "Label", Label: "zone"}
	})
	op.lists.Refuse(errors.New("the ring is away"))
	smaller := func(s *fakeapp.Spec) { s.Size = 2 }
	resize(t, namespace, "a", smaller)
	ringReaches(t, namespace, "a", lifecycle.ConditionReady, metav1.ConditionFalse, "StepFailed")
	resize(t, namespace, "b", smaller)
	ringHeld(t, namespace, "b", p.Name, `with zone="one"`, "ring "+namespace+"/a")
	resize(t, namespace, "c", smaller)
	ringReaches(t, namespace, "c", lifecycle.ConditionReady, metav1.ConditionFalse, "StepFailed")
	op.lists.Refuse(nil)
	clock.Step(time.Minute) // a step that has failed is due again
	for _, name := range []string{"a", "b", "c"} {
		poke(t, namespace, name)
		ringSettles(t, namespace, name, 2)
	}
}

func TestWaveWaitsForUnhealthyPreviousWave(t *testing.T) {
	namespace, _, clock := clocked(t, "canary", "prod")
	relabel(t, namespace, "canary", "wave", "first")
	p := newPolicy(t, namespace, "waves", func(s *v1alpha1.OperationPolicySpec) {
		s.Canary = &v1alpha1.Canary{Soak: metav1.Duration{Duration: time.Hour}, Waves: []v1alpha1.Wave{
			{Name: "first", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"wave": "first"}}},
		}}
	})
	resize(t, namespace, "prod", func(s *fakeapp.Spec) { s.Size = 2 })
	ringHeld(t, namespace, "prod", p.Name, `wave "first" soaks until Tue 2026-11-24 13:00 UTC`)
	resize(t, namespace, "canary", func(s *fakeapp.Spec) { s.Mood = "fail" })
	ringHeld(t, namespace, "prod", "halted, because Ring "+namespace+`/canary of wave "first" is stalled: CannotRender`)
	clock.SetTime(tuesday.Add(2 * time.Hour))
	resize(t, namespace, "canary", func(s *fakeapp.Spec) { s.Mood = ""; s.Size = 2 })
	ringSettles(t, namespace, "canary", 2) // the first wave does not wait
	ringHeld(t, namespace, "prod", "soaks until Tue 2026-11-24 15:00 UTC")
	clock.SetTime(tuesday.Add(3 * time.Hour))
	poke(t, namespace, "prod")
	ringSettles(t, namespace, "prod", 2)
}

// A freeze holds a membership change that the spec asks for. It holds no repair, not even
// one that continues after the change, and no new object. The history distinguishes them.
func TestFreezeHoldsMembershipChanges(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	p := newPolicy(t, namespace, "freeze", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "the sale"} })
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 4 })
	ringHeld(t, namespace, "r", "Add m000003", p.Name, "frozen (the sale)")
	setHealth(t, namespace, "r-m000001", fakeapp.Lost)
	eventually(t, "the lost member is replaced", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil || !slices.Equal(r.Status.Members, []string{"m000000", "m000002", "m000003"}) {
			return fmt.Errorf("members are %v: %w", r.Status.Members, err)
		}
		return nil
	})
	ringHeld(t, namespace, "r", "Add m000004", "frozen (the sale)")
	newRing(t, namespace, "new", 2)
	ringSettles(t, namespace, "new", 2)
	must(t, api.Delete(t.Context(), p))
	ringSettles(t, namespace, "r", 4)
	causes := map[string]lifecycle.Cause{}
	for _, e := range bookOf(t, namespace, "r").Entries {
		if e.Step.Name == "Add" && e.Result == history.ResultSucceeded {
			causes[e.Step.Target] = e.Step.Cause
		}
	}
	if causes["m000003"] != lifecycle.CauseFault || causes["m000004"] != lifecycle.CauseSpecChange {
		t.Errorf("the history has the causes %v", causes)
	}
}

// A freeze holds routine steps of a change, however often a user changes the spec meanwhile:
// the spec that worked last stays known.
func TestManyEditsDoNotEndAFreeze(t *testing.T) {
	namespace, op, _ := clocked(t, "r")
	newPolicy(t, namespace, "sale", frozen)
	for i := range revision.Limit + 1 {
		resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 4 + i%2 })
		eventually(t, "the change is a revision", func() error {
			if all := revisionsOf(t, namespace); all[len(all)-1].Number < int64(i+2) {
				return fmt.Errorf("%w: revision %d", errNotYet, all[len(all)-1].Number)
			}
			return nil
		})
		ringHeld(t, namespace, "r", "frozen (sale)")
	}
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 6 })
	quiet(t, namespace, op)
	ringHeld(t, namespace, "r", "frozen (sale)")
	if r, err := get(t, &fakeapp.Ring{}, namespace, "r"); err != nil || len(r.Status.Members) != 3 {
		t.Errorf("members %v, %v", r.Status.Members, err)
	}
}
