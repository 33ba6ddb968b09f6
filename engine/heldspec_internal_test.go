package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// declared is a custom resource with a spec.
type declared struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		From string `json:"from,omitempty"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (d *declared) StatusFields() (*int64, *[]metav1.Condition) {
	return &d.Status.ObservedGeneration, &d.Status.Conditions
}

func (d *declared) DeepCopyObject() runtime.Object {
	out := *d
	return &out
}

// starter starts what was lost from the spec.
type starter struct {
	lifecycle.Planner[*declared, string]
}

func (starter) Effect(_ *declared, seen string, s lifecycle.Step) (during, after string) {
	return s.Name, seen
}

func (starter) Next(want *declared, _ string, _ time.Time) lifecycle.Decision {
	s := lifecycle.Step{Name: "Start", Target: "a-0", Intent: lifecycle.IntentRepair, Reason: "Lost", Args: map[string]string{"from": want.Spec.From}}
	if want.Spec.From == "elsewhere" {
		s.Target = "a-1"
	}
	return lifecycle.Proceed(s)
}

// A repair uses the spec that worked last while a policy holds the present one, if that spec needs the same repair.
func TestRepairUsesTheSpecThatWorkedLast(t *testing.T) {
	freeze := v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}}
	cases := map[string]struct {
		reason string
		worked string // the spec of generation 1, which settled; empty if there was none
		policy v1alpha1.OperationPolicySpec
		want   string
	}{
		"Held":      {"the change is held", "old", freeze, "old"},
		"Open":      {"no policy holds the change", "old", v1alpha1.OperationPolicySpec{}, "new"},
		"First":     {"a new object has no other spec", "", freeze, "new"},
		"Unchanged": {"the present spec has worked", "new", freeze, "new"},
		"Another":   {"the spec that worked does not need this repair", "elsewhere", freeze, "new"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := &engine[*declared, string]{
				app: App[*declared, string]{Planner: starter{}}, operator: testEngine(time.Unix(1000, 0)).operator, revisions: noRevisions(), gvk: fakeKind,
			}
			all := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: c.policy}})
			e.operator.policies.All.Store(&all)
			obj := &declared{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u1", Generation: 1}}
			obj.Spec.From = c.worked
			if c.worked != "" {
				if _, err := e.revisions.Save(t.Context(), obj, "ann", true); err != nil {
					t.Fatal(err)
				}
			}
			obj.Spec.From, obj.Generation = "new", 2
			r := newReconciliation[*declared, string](obj, "ann", time.Unix(1000, 0))
			r.decision = starter{}.Next(r.obj, "", time.Time{})
			e.judge(t.Context(), r)
			if got := r.decision.Step.Args["from"]; r.decision.Outcome != lifecycle.OutcomeProceed || got != c.want || r.actFor.Spec.From != c.want {
				t.Errorf("%s: %s from %q for %q, want %q", c.reason, r.decision, got, r.actFor.Spec.From, c.want)
			}
			if r.obj.Spec.From != "new" {
				t.Errorf("the object itself has the spec %q", r.obj.Spec.From)
			}
		})
	}
}
