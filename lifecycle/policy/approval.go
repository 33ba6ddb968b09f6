package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// Valid is the condition that says what an approval is worth.
const Valid = "Valid"

// What an approval is worth, as reasons of that condition.
const (
	// Approved means that it lets the steps pass.
	Approved = "Approved"
	// Expired means that its time is over.
	Expired = "Expired"
	// PlanChanged means that what is left to do is not what was approved.
	PlanChanged = "PlanChanged"
	// GenerationChanged means that the object was changed since.
	GenerationChanged = "GenerationChanged"
	// ObjectGone means that there is no such object any more.
	ObjectGone = "ObjectGone"
	// Done means that all steps have been taken.
	Done = "Done"
	// Unknown means that what is left to do cannot be told now.
	Unknown = "Unknown"
	// ApproverIsAuthor means that a policy wants another user than the author of the change.
	ApproverIsAuthor = "ApproverIsAuthor"
	// AuthorUnknown means that a policy wants another user than the author, who is not known.
	AuthorUnknown = "AuthorUnknown"
)

// RemainingPlan is an object and what is left to do for it.
type RemainingPlan struct {
	Object     Object
	UID        string
	Generation int64
	// Author is the user who made this generation; empty if that is not known.
	Author string
	// OtherUser says that a policy accepts no approval by the author.
	OtherUser bool
	// Steps are those that the plan has now. Repairs among them need no approval of
	// theirs, and do not count.
	Steps []lifecycle.Step
	// Unknown is why the plan is not known; empty if it is.
	Unknown string
}

// ApprovalState is what an approval is worth: whether it is valid, a reason, and a sentence.
type ApprovalState struct {
	Valid           bool
	Reason, Message string
}

// ApprovalStateOf says what the approval is worth for the object now.
func ApprovalStateOf(a *v1alpha1.Approval, ahead RemainingPlan, now time.Time) ApprovalState {
	about := a.Spec.TargetRef
	switch {
	case about.UID != ahead.UID:
		return ApprovalState{false, ObjectGone, fmt.Sprintf("The %s %s that was approved for is gone; what has its name now is another.", about.Kind, about.Name)}
	case about.Generation != ahead.Generation:
		return ApprovalState{false, GenerationChanged, fmt.Sprintf(
			"It was given for generation %d of the object, whose specification was changed since: it is at generation %d. Approve anew.", about.Generation, ahead.Generation)}
	}
	left := wishes(ahead.Steps)
	covered, _ := covers(a.Spec.Steps, ahead.Steps)
	switch {
	case spent(a), len(left) == 0 && !covered && ahead.Unknown == "":
		return ApprovalState{false, Done, "All steps have been taken."}
	case ahead.Unknown != "":
		return ApprovalState{false, Unknown, "What is left to do is not known: " + ahead.Unknown}
	case !a.Spec.ExpirationTime.After(now):
		return ApprovalState{false, Expired, fmt.Sprintf("It was valid until %s. Approve anew.", moment(a.Spec.ExpirationTime.Time, nil))}
	case !covered:
		return ApprovalState{false, PlanChanged, fmt.Sprintf("The plan is %s; approved was %s. Look at it, and approve anew.", names(ahead.Steps), approvedNames(a.Spec.Steps))}
	case ahead.OtherUser:
		return byOther(a, ahead)
	}
	return approvedUntil(a)
}

// byOther is what a complete approval is worth where the author of a change may not approve it.
func byOther(a *v1alpha1.Approval, ahead RemainingPlan) ApprovalState {
	switch ahead.Author {
	case "":
		return ApprovalState{false, AuthorUnknown, fmt.Sprintf("A policy accepts no approval by the author of a change, and who made generation %d is not known.", ahead.Generation)}
	case a.Spec.Approver:
		return ApprovalState{false, ApproverIsAuthor, fmt.Sprintf("A policy accepts no approval by the author of a change, and %s made generation %d. Let another user approve.", a.Spec.Approver, ahead.Generation)}
	}
	return approvedUntil(a)
}

func approvedUntil(a *v1alpha1.Approval) ApprovalState {
	return ApprovalState{true, Approved, fmt.Sprintf("The steps may be taken until %s.", moment(a.Spec.ExpirationTime.Time, nil))}
}

// spent reports whether all steps of the approval have been taken once: it does not
// come to life again when the same has to be done again.
func spent(a *v1alpha1.Approval) bool {
	c := apimeta.FindStatusCondition(a.Status.Conditions, Valid)
	return c != nil && c.Reason == Done
}

// wishes are the steps that are no repairs.
func wishes(steps []lifecycle.Step) []lifecycle.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s lifecycle.Step) bool { return s.Intent == lifecycle.IntentRepair })
}

// covers reports whether what is left is how the approved steps end. Repairs may be
// left that nobody approved; whole says that there are none.
func covers(approved []v1alpha1.ApprovedStep, left []lifecycle.Step) (some, whole bool) {
	end := len(approved)
	whole = true
	for _, step := range slices.Backward(left) {
		switch {
		case end > 0 && same(approved[end-1], step):
			end--
		case step.Intent == lifecycle.IntentRepair:
			whole = false
		default:
			return false, false
		}
	}
	some = end < len(approved)
	return some, some && whole
}

func same(a v1alpha1.ApprovedStep, step lifecycle.Step) bool {
	class := lifecycle.Class(a.Class)
	return step.Same(lifecycle.Step{Name: a.Name, Target: a.Target, Args: a.Args}) &&
		(class == step.Class || !class.IsDisruptive() && !step.Class.IsDisruptive())
}

// some is how many steps a sentence names.
const some = 5

func names(steps []lifecycle.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.String())
	}
	return few(all)
}

func approvedNames(steps []v1alpha1.ApprovedStep) string {
	var all []string
	for _, s := range steps {
		all = append(all, lifecycle.Step{Name: s.Name, Target: s.Target}.String())
	}
	return few(all)
}

func few(all []string) string {
	if len(all) <= some {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:some], ", "), len(all)-some)
}

func wholly(a *v1alpha1.Approval, ahead RemainingPlan) bool {
	_, whole := covers(a.Spec.Steps, ahead.Steps)
	return whole
}

// ApprovalCheckOf says what the approvals of an object say of its next step. The one that
// stays valid longest counts. A repair that needs an approval has to be a part of what
// was approved.
func ApprovalCheckOf(approvals []*v1alpha1.Approval, ahead RemainingPlan, step lifecycle.Step, now time.Time) ApprovalCheck {
	var best *v1alpha1.Approval
	var p ApprovalCheck
	for _, a := range approvals {
		w := ApprovalStateOf(a, ahead, now)
		switch {
		case w.Valid && step.Intent == lifecycle.IntentRepair && !wholly(a, ahead):
			p.Because = fmt.Sprintf("the approval %q does not have this repair", a.Name)
		case w.Valid && (best == nil || a.Spec.ExpirationTime.After(best.Spec.ExpirationTime.Time)):
			best = a
		case !w.Valid && w.Reason != Done:
			p.Because = fmt.Sprintf("the approval %q is not valid (%s)", a.Name, w.Reason)
		}
	}
	if best != nil {
		p.Approval = &history.Approval{Name: best.Name, By: best.Spec.Approver, Reason: best.Spec.Reason}
	}
	return p
}
