package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// idle is a planner whose world is the name of the step under way.
type idle struct {
	lifecycle.Planner[*fake, string]
}

func (idle) Effect(_ *fake, seen string, s lifecycle.Step) (during, after string) {
	return s.Name, seen
}

// A policy that holds a wish does not hold the repairs behind it. Gates hold both.
func TestARepairBehindAHeldWishGoesOn(t *testing.T) {
	wish := lifecycle.Proceed(lifecycle.Step{Name: "Restart", Class: lifecycle.ClassDisruptive, Reason: "Outdated"})
	repair := lifecycle.Proceed(lifecycle.Step{Name: "Remove", Class: lifecycle.ClassDestructive, Intent: lifecycle.IntentRepair, Reason: "Dead"})
	waiting := lifecycle.WaitFor(lifecycle.Step{Name: "Ready", Reason: "Starting"}, time.Time{}).Heartbeat(time.Second)
	freeze := v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}}
	strict := v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}, RepairPolicy: v1alpha1.RepairPolicyHold}
	cases := map[string]struct {
		reason string
		rules  []lifecycle.Decision
		policy v1alpha1.OperationPolicySpec
		gates  []lifecycle.Gate[*fake, string]
		want   string
	}{
		"Repair":     {"the repair goes on", []lifecycle.Decision{wish, repair}, freeze, nil, "Proceed Remove (Dead): "},
		"NoRepair":   {"nothing is to be repaired", []lifecycle.Decision{wish}, freeze, nil, "Wait Restart (HeldByPolicy)"},
		"Strict":     {"the policy holds repairs, too", []lifecycle.Decision{wish, repair}, strict, nil, "Wait Restart (HeldByPolicy)"},
		"Wait":       {"something is waited for first", []lifecycle.Decision{wish, waiting, repair}, freeze, nil, "Wait Restart (HeldByPolicy)"},
		"GatedWish":  {"a gate speaks of the world, and holds what comes after", []lifecycle.Decision{wish, repair}, freeze, gates("Restart"), "Wait Restart (HeldByGate)"},
		"GatedBoth":  {"a gate holds the repair", []lifecycle.Decision{wish, repair}, freeze, gates("Remove"), "Wait Remove (HeldByGate)"},
		"Unselected": {"no policy", []lifecycle.Decision{wish, repair}, v1alpha1.OperationPolicySpec{}, nil, "Proceed Restart (Outdated): "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := &engine[*fake, string]{app: App[*fake, string]{Planner: idle{}, Gates: c.gates}, operator: testEngine(time.Unix(1000, 0)).operator, revisions: noRevisions()}
			all := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: c.policy}})
			e.operator.policies.All.Store(&all)
			r := &reconciliation[*fake, string]{result: result{object: &fake{}, decision: lifecycle.First(c.rules...)}, obj: &fake{}}
			e.judge(t.Context(), r)
			if got := r.decision.String(); len(got) < len(c.want) || got[:len(c.want)] != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
			if held := len(r.refusals) > 0; held != r.decision.IsHeld() {
				t.Errorf("there are refusals: %t, of %s", held, r.decision)
			}
			if soon := r.orDue(e.now(), time.Hour) == time.Second; soon != (name == "Wait") {
				t.Errorf("it is looked at again in %s", r.orDue(e.now(), time.Hour))
			}
		})
	}
}

// noRevisions stores none yet.
func noRevisions() *revision.Store {
	c := fakeclient.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	return revision.NewStore("app", fakeKind, nil, c, c)
}

// gates has one that refuses the step of that name.
func gates(step string) []lifecycle.Gate[*fake, string] {
	return []lifecycle.Gate[*fake, string]{{
		Name: "KeepsQuorum", Message: func(_ *fake, _, _ string, _ lifecycle.Step) string { return "" },
		Violation: func(_ *fake, during string) int {
			if during == step {
				return 1
			}
			return 0
		},
	}}
}

// Five objects that never get well hold no other object back: they are Blocked, held, paused,
// at rest, or they mend something.
func TestOnlyAMovingObjectHoldsASlot(t *testing.T) {
	restart := lifecycle.Step{Name: "Restart", Class: lifecycle.ClassDisruptive}
	cases := map[string]struct {
		result result
		keeps  bool
	}{
		"Waiting": {result{decision: lifecycle.WaitFor(restart, time.Time{})}, true},
		"Retry":   {result{decision: lifecycle.RetryIn(0, "X", "")}, true},
		"Blocked": {result{decision: lifecycle.Block("X", "")}, false},
		"Failed":  {result{decision: lifecycle.Fail("X", "")}, false},
		"Settled": {result{decision: lifecycle.First()}, false},
		"Paused":  {result{paused: true}, false},
		"Gate":    {result{refusals: []lifecycle.Refusal{{Gate: "KeepsQuorum"}}}, true},
		"Policy":  {result{refusals: []lifecycle.Refusal{{Policy: "nights"}}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := testEngine(time.Unix(1000, 0))
			c.result.key = types.NamespacedName{Namespace: "x", Name: "a"}
			other := budget.Claim{Holder: "other", Namespace: "y"}
			if e.operator.budget.Ask(budget.Claim{Holder: e.holder(c.result.key), Namespace: "x"}, func() {}) != nil {
				t.Fatal("there is a slot")
			}
			e.updateBudget(&c.result)
			if keeps := e.operator.budget.Ask(other, func() {}) != nil; keeps != c.keeps {
				t.Errorf("it keeps its slot: %v, want %v", keeps, c.keeps)
			}
		})
	}
}

func TestRepairsAndDeletionsNeedNoSlot(t *testing.T) {
	going := &fake{}
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	cases := map[string]struct {
		obj  *fake
		step lifecycle.Step
		want bool
	}{
		"Wish":     {&fake{}, lifecycle.Step{Class: lifecycle.ClassDisruptive}, true},
		"Repair":   {&fake{}, lifecycle.Step{Class: lifecycle.ClassDestructive, Intent: lifecycle.IntentRepair}, false},
		"Routine":  {&fake{}, lifecycle.Step{Class: lifecycle.ClassRoutine}, false},
		"Deletion": {going, lifecycle.Step{Class: lifecycle.ClassIrreversible}, false},
	}
	for name, c := range cases {
		if got := asksBudget(c.obj, c.step); got != c.want {
			t.Errorf("%s: asks for a slot: %v, want %v", name, got, c.want)
		}
	}
}
