package envtest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
	"github.com/governor-dev/governor/test/fakeapp"
)

// approvalsIn returns the approvals of a namespace.
func approvalsIn(t *testing.T, namespace string) []v1alpha1.Approval {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ApprovalList"))
	must(t, api.List(t.Context(), list, client.InNamespace(namespace)))
	all := make([]v1alpha1.Approval, len(list.Items))
	for i, item := range list.Items {
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &all[i]))
	}
	return all
}

// wishing creates a paused ring with a pending change.
func wishing(t *testing.T) *adviser {
	t.Helper()
	a := previews(t, 1)
	annotateRing(t, a.namespace, lifecycle.AnnotationPaused, "true")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	return a
}

// An approval covers exactly the plan, records the user that the API server authenticated,
// and expires after the given time. A revocation deletes it.
func TestPluginApproves(t *testing.T) {
	a := wishing(t)
	began := time.Now()
	t.Log(expect(t, a.namespace, 0, []string{
		"1. Add m000001 (Routine)", "approval/r-", ": 2 steps of ring/r, generation 2, by ", " until ",
	}, "approve", "ring", "r", "--valid-for", "30m", "--reason", "change 4711", "--yes"))
	given := approvalsIn(t, a.namespace)
	if len(given) != 1 {
		t.Fatalf("there are %d approvals", len(given))
	}
	r, err := get(t, &fakeapp.Ring{}, a.namespace, "r")
	must(t, err)
	got := given[0]
	want := v1alpha1.ApprovalSpec{
		TargetRef: v1alpha1.ApprovedObject{Group: fakeapp.GroupVersion.Group, Kind: "Ring", Name: "r", UID: string(r.UID), Generation: 2},
		Steps: []v1alpha1.ApprovedStep{
			{Name: "Add", Target: "m000001", Class: v1alpha1.ApprovedClass(lifecycle.ClassRoutine)}, {Name: "Promote", Target: "m000001", Class: v1alpha1.ApprovedClass(lifecycle.ClassRoutine)},
		},
		Approver: got.Spec.Approver, ExpirationTime: got.Spec.ExpirationTime, Reason: "change 4711",
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Spec.Approver == "" {
		t.Errorf("by %q: %s", got.Spec.Approver, diff)
	}
	if lasts := got.Spec.ExpirationTime.Sub(began); lasts < 29*time.Minute || lasts > 31*time.Minute {
		t.Errorf("it lasts %s", lasts)
	}
	if len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != r.UID {
		t.Errorf("it outlives what it is for: %v", got.OwnerReferences)
	}
	expect(t, a.namespace, 0, []string{"approval/" + got.Name + " revoked: 2 steps of ring/r, generation 2, approved by " + got.Spec.Approver + " until"}, "revoke", "ring/r")
	if left := approvalsIn(t, a.namespace); len(left) != 0 {
		t.Errorf("%d approvals are left", len(left))
	}
	expect(t, a.namespace, 0, []string{"There is no approval for ring/r"}, "revoke", "ring/r")
}

// A pipeline approves the plan that was reviewed, and no other plan.
func TestPluginApprovesReviewedPlanOnly(t *testing.T) {
	a := wishing(t)
	var seen struct {
		preview.Report
		StepsDigest string
	}
	must(t, json.Unmarshal([]byte(expect(t, a.namespace, 0, nil, "plan", "ring/r", "-o", "json")), &seen))
	expect(t, a.namespace, 0, []string{"Steps digest: " + seen.StepsDigest}, "plan", "ring/r", "-o", "wide")
	expect(t, a.namespace, 1, []string{"there is no terminal for the confirmation: add --yes"}, "approve", "ring/r")
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 3 })
	expect(t, a.namespace, 1, []string{"the plan has changed", "not " + seen.StepsDigest}, "approve", "ring/r", "--yes", "--steps-digest", seen.StepsDigest)
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	said := expect(t, a.namespace, 0, nil, "approve", "ring/r", "--yes", "--steps-digest", seen.StepsDigest, "-o", "name")
	if !strings.HasPrefix(said, "approval.governor.dev/r-") {
		t.Errorf("its name is %q", said)
	}
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 1 })
	expect(t, a.namespace, 1, []string{"there is nothing to approve: no step is planned for ring/r"}, "approve", "ring/r", "--yes")
	expect(t, a.namespace, 1, []string{"--valid-for 0s: it must be more than 0"}, "approve", "ring/r", "--valid-for", "0s")
	expect(t, a.namespace, 1, []string{"--reason has 300 characters: at most 256"}, "approve", "ring/r", "--reason", strings.Repeat("x", 300))
	if n := len(approvalsIn(t, a.namespace)); n != 1 {
		t.Errorf("%d approvals were given", n)
	}
}

// A plan shows a step that a policy holds, and the remedy. An approval by the plugin lets
// the step pass.
func TestPluginApprovesHeldStep(t *testing.T) {
	a := previews(t, 3)
	p := newPolicy(t, a.namespace, "asks", func(s *v1alpha1.OperationPolicySpec) {
		s.Approval = &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Disruptive"}}
	})
	eventually(t, "the policy is known", func() error {
		if said, _ := plugin(t, a.namespace, "plan", "ring/r", "--set", "spec.size=2"); !strings.Contains(said, "HELD by") || !strings.Contains(said, p.Name) {
			return errors.New(said)
		}
		return nil
	})
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, lifecycle.ReasonHeldByPolicy)
	t.Log(expect(t, a.namespace, 0, []string{
		"not ready, HeldByPolicy. The step Remove m000002", p.Name, "kubectl governor approve", "held; not ready since ",
	}, "status", "ring/r"))
	expect(t, a.namespace, 0, []string{"ring/r   False   HeldByPolicy"}, "status")
	t.Log(expect(t, a.namespace, 0, []string{"HELD by", "1 step of ring/r"}, "approve", "ring/r", "--yes", "--reason", "it is late"))
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	t.Log(expect(t, a.namespace, 0, []string{"Remove m000002 in"}, "history", "ring/r"))
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 1 })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, lifecycle.ReasonHeldByPolicy)
	expect(t, a.namespace, 0, []string{"revoked: 1 step of ring/r, generation 2", "; it was no longer valid ("}, "revoke", "ring/r")
}
