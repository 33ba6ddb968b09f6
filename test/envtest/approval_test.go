package envtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/test/fakeapp"
)

func words(s *v1alpha1.OperationPolicySpec) {
	s.Approval = &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Disruptive", "Destructive", "Irreversible"}}
}

// approvalOf returns an approval of the present plan of the ring r, valid for an hour.
func approvalOf(t *testing.T, namespace, name string, members ...string) *v1alpha1.Approval {
	t.Helper()
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	a := &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.ApprovalSpec{
		TargetRef: v1alpha1.ApprovedObject{Group: fakeapp.GroupVersion.Group, Kind: "Ring", Name: "r", UID: string(r.UID), Generation: r.Generation},
		Approver:  "ann", Reason: "tested", ExpirationTime: metav1.NewTime(tuesday.Add(time.Hour)),
	}}
	for _, m := range members {
		a.Spec.Steps = append(a.Spec.Steps, v1alpha1.ApprovedStep{Name: "Remove", Target: m, Class: "Disruptive"})
	}
	return a
}

func approve(t *testing.T, a *v1alpha1.Approval) *v1alpha1.Approval {
	t.Helper()
	must(t, as(t, a.Spec.Approver).Create(t.Context(), a))
	return a
}

// as returns a client of that user with all rights.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

func approvalIs(t *testing.T, a *v1alpha1.Approval, status metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, "the approval "+a.Name+" is "+reason, func() error {
		now, err := get(t, &v1alpha1.Approval{}, a.Namespace, a.Name)
		if err != nil {
			return err
		}
		return condition(now.Status.Conditions, policy.ConditionValid, status, reason)
	})
}

// unapproved creates a ring that waits for an approval.
func unapproved(t *testing.T, size int) (string, *operator, *clocktesting.FakeClock) {
	t.Helper()
	namespace, op, clock := clocked(t, "r")
	newPolicy(t, namespace, "words", words)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = size })
	ringHeld(t, namespace, "r", "Remove m000002", "there is none", "kubectl governor approve ring r -n "+namespace)
	return namespace, op, clock
}

func TestApprovalLetsItsStepsPass(t *testing.T) {
	namespace, op, _ := unapproved(t, 1)
	quiet(t, namespace, op)
	a := approve(t, approvalOf(t, namespace, "a", "m000002", "m000001"))
	ringSettles(t, namespace, "r", 1)
	approvalIs(t, a, metav1.ConditionFalse, policy.ReasonDone)
	n := 0
	for _, e := range bookOf(t, namespace, "r").Entries {
		if e.Step.Name == "Remove" && e.Approval != nil {
			n++
			if e.Approval.Name != "a" || e.Approval.By != "ann" || e.Approval.Reason != "tested" {
				t.Errorf("the history has %+v", e.Approval)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d steps name their approval, want 2", n)
	}
	quiet(t, namespace, op)
}

// An approval of another plan, another generation or another time lets no step pass.
func TestInvalidApprovalsLetNoStepPass(t *testing.T) {
	namespace, _, clock := unapproved(t, 1)
	other := approve(t, approvalOf(t, namespace, "other", "m000002"))
	ringHeld(t, namespace, "r", `the approval "other" is not valid (PlanChanged)`)
	approvalIs(t, other, metav1.ConditionFalse, policy.ReasonPlanChanged)
	must(t, api.Delete(t.Context(), other))
	ringHeld(t, namespace, "r", "there is none")
	late := approvalOf(t, namespace, "late", "m000002", "m000001")
	late.Spec.ExpirationTime = metav1.NewTime(tuesday.Add(-time.Minute))
	approvalIs(t, approve(t, late), metav1.ConditionFalse, policy.ReasonExpired)
	ringHeld(t, namespace, "r", `"late" is not valid (Expired)`)
	must(t, api.Delete(t.Context(), late))
	freeze := newPolicy(t, namespace, "freeze", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} })
	ringHeld(t, namespace, "r", freeze.Name)
	good := approve(t, approvalOf(t, namespace, "good", "m000002", "m000001"))
	approvalIs(t, good, metav1.ConditionTrue, policy.ReasonApproved)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	approvalIs(t, good, metav1.ConditionFalse, policy.ReasonGenerationChanged)
	next := approve(t, approvalOf(t, namespace, "next", "m000002"))
	approvalIs(t, next, metav1.ConditionTrue, policy.ReasonApproved)
	clock.SetTime(tuesday.Add(time.Hour))
	poke(t, namespace, "r")
	approvalIs(t, next, metav1.ConditionFalse, policy.ReasonExpired)
	must(t, api.Delete(t.Context(), freeze))
	ringHeld(t, namespace, "r", "is not valid")
}

// Deleting an approval revokes it.
func TestDeletedApprovalIsRevoked(t *testing.T) {
	namespace, _, _ := unapproved(t, 2)
	freeze := newPolicy(t, namespace, "freeze", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} })
	ringHeld(t, namespace, "r", freeze.Name)
	a := approve(t, approvalOf(t, namespace, "a", "m000002"))
	approvalIs(t, a, metav1.ConditionTrue, policy.ReasonApproved)
	must(t, api.Delete(t.Context(), a))
	must(t, api.Delete(t.Context(), freeze))
	ringHeld(t, namespace, "r", "there is none")
}

func TestApprovalOfDeletedObject(t *testing.T) {
	namespace, _, clock := clocked(t, "r")
	a := approve(t, approvalOf(t, namespace, "a", "m000002"))
	approvalIs(t, a, metav1.ConditionFalse, policy.ReasonDone) // the plan is empty
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	b := approvalOf(t, namespace, "b", "m000002")
	must(t, api.Delete(t.Context(), r))
	eventually(t, "the ring is gone", func() error {
		if _, err := get(t, &fakeapp.Ring{}, namespace, "r"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	approve(t, b)
	eventually(t, "the approval is of nothing", func() error {
		clock.Step(time.Second) // a stopped clock would make the tracker wait for the ring's last write
		now, err := get(t, &v1alpha1.Approval{}, namespace, b.Name)
		if err != nil {
			return err
		}
		return condition(now.Status.Conditions, policy.ConditionValid, metav1.ConditionFalse, policy.ReasonObjectGone)
	})
}

// An approval is immutable.
func TestApprovalIsImmutable(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	a := approve(t, approvalOf(t, namespace, "a", "m000002"))
	eventually(t, "it is not changed", func() error {
		now, err := get(t, &v1alpha1.Approval{}, namespace, a.Name)
		must(t, err)
		now.Spec.Steps = append(now.Spec.Steps, v1alpha1.ApprovedStep{Name: "Remove", Target: "m000001"})
		if err := api.Update(t.Context(), now); err == nil || !strings.Contains(err.Error(), "cannot be changed: delete it, which revokes it") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// The API server rejects an approval in the name of another user.
func TestApproverMustBeTheUser(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	applied(t, "../../config/manager/approval.yaml")
	for _, user := range []string{"ann", "bob"} {
		allow(t, namespace, user)
	}
	forged := approvalOf(t, namespace, "forged", "m000002")
	eventually(t, "bob cannot approve as ann", func() error {
		err := asUser(t, "bob").Create(t.Context(), forged.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `spec.approver is "ann", and you are "bob": an approver approves in their own name only`) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	must(t, asUser(t, "ann").Create(t.Context(), forged))
}

// asUser returns a client of that user, with the rights that were granted.
func asUser(t *testing.T, user string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// allow grants the user the right to approve in the namespace.
func allow(t *testing.T, namespace, user string) {
	t.Helper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: "approve-" + user}
	must(t, api.Create(t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"governor.dev"}, Resources: []string{"approvals"}, Verbs: []string{"create"}},
	}}))
	must(t, api.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: user, APIGroup: rbacv1.GroupName}},
	}))
}

// In a terminating namespace, approvals are impossible and the history is gone. The
// message that holds the finalization steps names the remedy.
func TestHeldFinalizationInTerminatingNamespace(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	newPolicy(t, namespace, "words", words)
	a := approvalOf(t, namespace, "late", "m000002")
	book, err := get(t, &corev1.ConfigMap{}, namespace, "r.ring-history")
	must(t, err)
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	must(t, api.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	for _, obj := range []client.Object{book, r} { // as the namespace controller does
		must(t, api.Delete(t.Context(), obj))
	}
	if err := as(t, "ann").Create(t.Context(), a); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("it was approved: %v", err)
	}
	ringHeld(t, namespace, "r", "there is none", "kubectl governor bypass ring r -n "+namespace+" --reason REASON")
	eventually(t, "it is let go", func() error {
		base := r.DeepCopyObject().(*fakeapp.Ring)
		r.Annotations = map[string]string{lifecycle.AnnotationBypass: "it goes"}
		return api.Patch(t.Context(), r, client.MergeFrom(base))
	})
	eventually(t, "it goes", func() error {
		if _, err := get(t, &fakeapp.Ring{}, namespace, "r"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
}

// A preview reports which policies would hold a step, and which approval exists.
func TestPreviewReportsPoliciesAndApprovals(t *testing.T) {
	a := previews(t, 3)
	hold := func(size int) string {
		report, _ := previewOf(t, a.namespace, toSize(size))
		if len(report.Steps) == 0 || len(report.Steps[0].Held) == 0 || !report.Settles() {
			return fmt.Sprintf("%+v", report.Steps)
		}
		return lifecycle.Held(report.Steps[0].Step, report.Steps[0].Held...).Message
	}
	sees := func(size int, words string) {
		t.Helper()
		eventually(t, "the preview says "+words, func() error {
			if said := hold(size); !strings.Contains(said, words) {
				return fmt.Errorf("it says %s", said)
			}
			return nil
		})
	}
	newPolicy(t, a.namespace, "never", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} })
	sees(2, "frozen (sale)")
	newPolicy(t, a.namespace, "words", words)
	sees(2, "there is none")
	p := newPolicy(t, a.namespace, "pause", func(s *v1alpha1.OperationPolicySpec) { s.Paused = true })
	eventually(t, "the preview names the pausing policy", func() error {
		if report, _ := previewOf(t, a.namespace, toSize(2)); !report.Paused || !strings.Contains(report.PausedBy, p.Name) {
			return fmt.Errorf("it says %q", report.PausedBy)
		}
		return nil
	})
}
