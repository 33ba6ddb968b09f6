package envtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/test/fakeapp"
)

// toldNote looks for an event with the words.
func toldNote(t *testing.T, namespace, words string) error {
	t.Helper()
	events := &eventsv1.EventList{}
	must(t, api.List(t.Context(), events, client.InNamespace(namespace)))
	var notes []string
	for _, e := range events.Items {
		if strings.Contains(e.Note, words) {
			return nil
		}
		notes = append(notes, e.Note)
	}
	return fmt.Errorf("the events say %q", notes)
}

// policyIs waits until the policy's status satisfies the check.
func policyIs(t *testing.T, p *v1alpha1.OperationPolicy, what string, is func(v1alpha1.OperationPolicyStatus) bool) {
	t.Helper()
	eventually(t, p.Name+" "+what, func() error {
		now, err := get(t, &v1alpha1.OperationPolicy{}, "", p.Name)
		if err != nil {
			return err
		}
		if now.Status.ObservedGeneration != now.Generation || !is(now.Status) {
			return fmt.Errorf("its status is %+v", now.Status)
		}
		return nil
	})
}

func says(s v1alpha1.OperationPolicyStatus, kind, reason, words string) bool {
	c := apimeta.FindStatusCondition(s.Conditions, kind)
	return c != nil && c.Reason == reason && strings.Contains(c.Message, words)
}

func TestPolicyStatus(t *testing.T) {
	namespace, op, clock := clocked(t, "a", "b")
	p := newPolicy(t, namespace, "nights", nights)
	policyIs(t, p, "selects both", func(s v1alpha1.OperationPolicyStatus) bool {
		return s.Selected == 2 && s.Held == 0 && s.NextWindow == "2026-11-28T01:00:00Z" && says(s, lifecycle.ConditionReady, "InEffect", "")
	})
	resize(t, namespace, "a", func(s *fakeapp.Spec) { s.Size = 2 })
	policyIs(t, p, "holds one", func(s v1alpha1.OperationPolicyStatus) bool { return s.Selected == 2 && s.Held == 1 })
	quiet(t, namespace, op)
	clock.SetTime(time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC))
	poke(t, namespace, "a")
	policyIs(t, p, "holds none any more", func(s v1alpha1.OperationPolicyStatus) bool {
		return s.Held == 0 && s.NextWindow == "open until 2026-11-28T04:00:00Z"
	})
	must(t, api.Delete(t.Context(), newRing(t, namespace, "c", 1)))
	policyIs(t, p, "does not count who is gone", func(s v1alpha1.OperationPolicyStatus) bool { return s.Selected == 2 })
	quiet(t, namespace, op)
}

func TestInvalidPoliciesAreReported(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	nothing := newPolicy(t, namespace, "nothing", func(s *v1alpha1.OperationPolicySpec) { s.Selector.Kinds = []string{"Rings"} })
	policyIs(t, nothing, "selects nothing", func(s v1alpha1.OperationPolicyStatus) bool {
		return says(s, policy.ConditionSelectsNothing, policy.ConditionSelectsNothing, "The operator runs no Rings (spec.selector.kinds); it runs Memcached, ")
	})
	never := newPolicy(t, namespace, "never", func(s *v1alpha1.OperationPolicySpec) {
		s.Windows = []v1alpha1.Window{{Schedule: "0 0 30 2 *", Duration: metav1.Duration{Duration: time.Hour}}}
	})
	policyIs(t, never, "never opens", func(s v1alpha1.OperationPolicyStatus) bool {
		return s.NextWindow == "never" && says(s, lifecycle.ConditionReady, "Invalid", `spec.windows[0].schedule "0 0 30 2 *" never comes`)
	})
	a := newPolicy(t, namespace, "a", func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = v1alpha1.DriftPolicyReport })
	newPolicy(t, namespace, "b", func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = v1alpha1.DriftPolicyRepair })
	policyIs(t, a, "contradicts", func(s v1alpha1.OperationPolicyStatus) bool {
		return says(s, policy.ConditionConflicting, policy.ConditionConflicting, "spec.driftPolicy is Report here and Repair in the policy \""+namespace+"-b\": Report wins.")
	})
}

func TestInvalidPoliciesAreRefused(t *testing.T) {
	cases := map[string]struct {
		edit func(*v1alpha1.OperationPolicySpec)
		want string
	}{
		"Fields":   {func(s *v1alpha1.OperationPolicySpec) { nights(s); s.Windows[0].Schedule = "0 2 * *" }, "schedule must have five fields"},
		"Every":    {func(s *v1alpha1.OperationPolicySpec) { nights(s); s.Windows[0].Schedule = "@every 1h" }, "@every is no time of the day"},
		"Zone":     {func(s *v1alpha1.OperationPolicySpec) { nights(s); s.Windows[0].Schedule = "TZ=UTC 0 2 * * 6" }, "put the time zone into timeZone"},
		"Duration": {func(s *v1alpha1.OperationPolicySpec) { nights(s); s.Windows[0].Duration.Duration = time.Second }, "duration must be from 1m to 168h"},
		"Class": {func(s *v1alpha1.OperationPolicySpec) {
			s.Approval = &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Routine"}}
		}, `Unsupported value: "Routine"`},
		"Budget": {func(s *v1alpha1.OperationPolicySpec) { s.Budget = &v1alpha1.Budget{} }, "should be greater than or equal to 1"},
		"Label":  {func(s *v1alpha1.OperationPolicySpec) { s.Budget = &v1alpha1.Budget{MaxDisrupted: 1, Scope: "Label"} }, "label must name a label key with scope: Label"},
		"Labels": {func(s *v1alpha1.OperationPolicySpec) { s.Budget = &v1alpha1.Budget{MaxDisrupted: 1, Label: "zone"} }, "must not be set otherwise"},
		"Freeze": {func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{} }, "spec.freeze.reason"},
		"Waves":  {func(s *v1alpha1.OperationPolicySpec) { s.Canary = &v1alpha1.Canary{} }, "spec.canary.waves"},
		"NoNodes": {func(s *v1alpha1.OperationPolicySpec) { s.NodeMaintenance = &v1alpha1.NodeMaintenance{} },
			"spec.nodeMaintenance must name nodes, by nodes or by selector"},
		"AllNodes": {func(s *v1alpha1.OperationPolicySpec) {
			s.NodeMaintenance = &v1alpha1.NodeMaintenance{Selector: &metav1.LabelSelector{}}
		}, "spec.nodeMaintenance.selector must not be empty: it would select every node"},
		"EmptyNode": {func(s *v1alpha1.OperationPolicySpec) {
			s.NodeMaintenance = &v1alpha1.NodeMaintenance{Nodes: []string{""}}
		}, "spec.nodeMaintenance.nodes[0]"},
		"Drift": {func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = "Ignore" }, `supported values: "Repair", "Report"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{GenerateName: "wrong-"}}
			c.edit(&p.Spec)
			if err := api.Create(t.Context(), p, client.DryRunAll); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The operators of other namespaces follow cluster-wide policies, and leave their status
// to one operator. Two writers would count differently, and overwrite each other forever.
func TestOnePolicyStatusHasOneWriter(t *testing.T) {
	theirs := newNamespace(t)
	installRings(t)
	other := startOperator(t, theirs, func(_ *ctrl.Options, e *engine.Options) { e.Name, e.PolicyStatus = "other", false })
	newRing(t, theirs, "b", 3)
	ringReaches(t, theirs, "b", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	p := newPolicy(t, theirs, "freeze", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Namespaces, s.Freeze = nil, &v1alpha1.Freeze{Reason: "the sale"}
	})
	resize(t, theirs, "b", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, theirs, "b", lifecycle.ConditionReady, metav1.ConditionFalse, lifecycle.ReasonHeldByPolicy)

	ours, _, _ := clocked(t, "a")
	policyIs(t, p, "counts ours", func(s v1alpha1.OperationPolicyStatus) bool { return s.Selected == 1 && s.Held == 0 })
	for _, line := range other.since(0) {
		if strings.Contains(line, "operationpolicies") {
			t.Errorf("the other operator beside that of %s wrote %s", ours, line)
		}
	}
}
