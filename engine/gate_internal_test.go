package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/publish"
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
func TestRepairContinuesBehindHeldChange(t *testing.T) {
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
			e := engineOf(time.Unix(1000, 0), fakeKind, App[*fake, string]{Planner: idle{}, Gates: c.gates})
			all := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: c.policy}})
			e.operator.policies.All.Store(&all)
			r := &reconciliation[*fake, string]{Result: publish.Result{Object: &fake{}, Decision: lifecycle.First(c.rules...)}, obj: &fake{}}
			e.gate(t.Context(), r)
			if got := r.Decision.String(); len(got) < len(c.want) || got[:len(c.want)] != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
			if held := len(r.Refusals) > 0; held != r.Decision.IsHeld() {
				t.Errorf("there are refusals: %t, of %s", held, r.Decision)
			}
			if soon := r.Again.Equal(e.now().Add(time.Second)); soon != (name == "Wait") {
				t.Errorf("it is looked at again at %s", r.Again)
			}
		})
	}
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
