package policy_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// plan is two restarts and what prepares them.
func plan() []lifecycle.Step {
	return []lifecycle.Step{
		{Name: "Snapshot", Class: lifecycle.ClassRoutine},
		{Name: "Restart", Target: "a-1", Class: lifecycle.ClassDisruptive, Args: map[string]string{"version": "2"}},
		{Name: "Restart", Target: "a-2", Class: lifecycle.ClassDisruptive, Args: map[string]string{"version": "2"}},
	}
}

func approvalOf(steps []lifecycle.Step) *v1alpha1.Approval {
	a := &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.ApprovalSpec{
		TargetRef: v1alpha1.ApprovedObject{Group: "g", Kind: "Ring", Name: "orders", UID: "u", Generation: 3},
		Approver:  "ann", Reason: "tested", ExpirationTime: metav1.NewTime(tuesday.Add(time.Hour)),
	}}
	for _, s := range steps {
		a.Spec.Steps = append(a.Spec.Steps, v1alpha1.ApprovedStep{Name: s.Name, Target: s.Target, Class: v1alpha1.ApprovedClass(s.Class), Args: s.Args})
	}
	return a
}

func aheadOf(steps ...lifecycle.Step) policy.RemainingPlan {
	return policy.RemainingPlan{Object: orders, UID: "u", Generation: 3, Steps: steps}
}

func TestApprovalStateOf(t *testing.T) {
	worse := plan()
	worse[2].Class = lifecycle.ClassIrreversible
	other := plan()
	other[2].Args = map[string]string{"version": "3"}
	replaced, later := aheadOf(plan()...), aheadOf(plan()...)
	replaced.UID, later.Generation = "v", 4
	blind := aheadOf()
	blind.Unknown = "it cannot be seen"
	own, others, unknown := aheadOf(plan()...), aheadOf(plan()...), aheadOf(plan()...)
	own.OtherUser, own.Author = true, "ann"
	others.OtherUser, others.Author = true, "bob"
	unknown.OtherUser = true
	cases := map[string]struct {
		reason string
		ahead  policy.RemainingPlan
		now    time.Time
		want   string
		says   string
	}{
		"Whole":      {"nothing is done yet", aheadOf(plan()...), tuesday, policy.ReasonApproved, "until Tue 2026-11-24 13:00 UTC"},
		"Half":       {"what is done is gone from the front", aheadOf(plan()[2:]...), tuesday, policy.ReasonApproved, ""},
		"Mended":     {"repairs in between do not count", aheadOf(mend, plan()[1], mend, plan()[2]), tuesday, policy.ReasonApproved, ""},
		"More":       {"more is to be done", aheadOf(append(plan(), restart)...), tuesday, policy.ReasonPlanChanged, "The plan is now Snapshot, Restart a-1, Restart a-2, Restart a-1, and the approved plan was Snapshot, Restart a-1, Restart a-2. Review"},
		"Less":       {"an end that was approved is left out", aheadOf(plan()[:2]...), tuesday, policy.ReasonPlanChanged, ""},
		"Order":      {"in another order", aheadOf(plan()[2], plan()[1]), tuesday, policy.ReasonPlanChanged, ""},
		"Args":       {"with another argument", aheadOf(other...), tuesday, policy.ReasonPlanChanged, ""},
		"Class":      {"it hurts more than was approved", aheadOf(worse...), tuesday, policy.ReasonPlanChanged, ""},
		"Done":       {"nothing is left", aheadOf(), tuesday, policy.ReasonDone, ""},
		"OnlyMend":   {"only what needs no approval is left", aheadOf(mend), tuesday, policy.ReasonDone, ""},
		"Expired":    {"its time is over, to the moment", aheadOf(plan()...), tuesday.Add(time.Hour), policy.ReasonExpired, "It was valid until Tue 2026-11-24 13:00 UTC."},
		"Another":    {"the same name, another object", replaced, tuesday, policy.ReasonObjectGone, "another"},
		"Generation": {"the wish was changed", later, tuesday, policy.ReasonGenerationChanged, "generation 3"},
		"Own":        {"its author approved", own, tuesday, policy.ReasonApproverIsAuthor, "ann made generation 3. Another user must approve."},
		"OwnExpired": {"what ended is not the author's fault", own, tuesday.Add(time.Hour), policy.ReasonExpired, ""},
		"Others":     {"another user approved", others, tuesday, policy.ReasonApproved, ""},
		"Authorless": {"the author is not known", unknown, tuesday, policy.ReasonAuthorUnknown, "the author of generation 3 is not known"},
		"Unseen":     {"the plan is not known", blind, tuesday, policy.ReasonUnknown, "it cannot be seen"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := policy.ApprovalStateOf(approvalOf(plan()), c.ahead, c.now)
			if got.Reason != c.want || got.Valid != (c.want == policy.ReasonApproved) || !strings.Contains(got.Message, c.says) {
				t.Errorf("%s: got %+v, want %s", c.reason, got, c.want)
			}
		})
	}
}

// A plan may have steps that finish what others have begun, which are repairs.
func TestRepairsThatAreApproved(t *testing.T) {
	dismiss := lifecycle.Step{Name: "DeleteMember", Target: "a-1", Class: lifecycle.ClassDestructive, Intent: lifecycle.IntentRepair}
	a := approvalOf([]lifecycle.Step{plan()[1], dismiss, plan()[2]})
	cases := map[string]struct {
		reason string
		left   []lifecycle.Step
		want   string
	}{
		"Whole":   {"as it was approved", []lifecycle.Step{plan()[1], dismiss, plan()[2]}, policy.ReasonApproved},
		"Begun":   {"with what finishes it", []lifecycle.Step{dismiss, plan()[2]}, policy.ReasonApproved},
		"Mended":  {"and a repair besides", []lifecycle.Step{mend, plan()[1], dismiss, mend, plan()[2]}, policy.ReasonApproved},
		"Without": {"without what finishes it, it is another plan", []lifecycle.Step{plan()[1], plan()[2]}, policy.ReasonPlanChanged},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := policy.ApprovalStateOf(a, aheadOf(c.left...), tuesday); got.Reason != c.want {
				t.Errorf("%s: got %+v, want %s", c.reason, got, c.want)
			}
		})
	}
}

// An approval whose steps were all taken does not let the same steps pass again.
func TestAnApprovalIsSpent(t *testing.T) {
	a := approvalOf(plan())
	a.Status.Conditions = []metav1.Condition{{Type: policy.ConditionValid, Status: metav1.ConditionFalse, Reason: policy.ReasonDone}}
	if got := policy.ApprovalStateOf(a, aheadOf(plan()[2]), tuesday); got.Reason != policy.ReasonDone {
		t.Errorf("got %+v", got)
	}
}

func TestApprovalCheckOf(t *testing.T) {
	short, long, wrong := approvalOf(plan()), approvalOf(plan()), approvalOf(plan()[:1])
	long.Name, long.Spec.ExpirationTime = "long", metav1.NewTime(tuesday.Add(2*time.Hour))
	wrong.Name = "wrong"
	if got := policy.ApprovalCheckOf([]*v1alpha1.Approval{short, long, wrong}, aheadOf(plan()...), plan()[1], tuesday); got.Approval == nil || got.Approval.Name != "long" || got.Approval.By != "ann" {
		t.Errorf("the one that lasts longest counts, got %+v", got)
	}
	if got := policy.ApprovalCheckOf([]*v1alpha1.Approval{wrong}, aheadOf(plan()...), plan()[1], tuesday); got.Approval != nil || !strings.Contains(got.Because, `"wrong" is not valid (PlanChanged)`) {
		t.Errorf("got %+v", got)
	}
	if got := policy.ApprovalCheckOf(nil, aheadOf(plan()...), plan()[1], tuesday); got != (policy.ApprovalCheck{}) {
		t.Errorf("got %+v", got)
	}
	repaired := append([]lifecycle.Step{mend}, plan()...)
	if got := policy.ApprovalCheckOf([]*v1alpha1.Approval{short}, aheadOf(repaired...), mend, tuesday); got.Approval != nil {
		t.Errorf("a repair that was not approved has no approval, got %+v", got)
	}
	if got := policy.ApprovalCheckOf([]*v1alpha1.Approval{approvalOf(repaired)}, aheadOf(repaired...), mend, tuesday); got.Approval == nil {
		t.Errorf("one that was approved has, got %+v", got)
	}
}
