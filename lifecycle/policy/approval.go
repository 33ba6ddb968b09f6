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

// ConditionValid is the condition of an approval that reports whether it permits the steps.
const ConditionValid = "Valid"

// Reasons of the condition Valid.
const (
	// ReasonApproved means that the approval permits the steps.
	ReasonApproved = "Approved"
	// ReasonExpired means that the expiration time has passed.
	ReasonExpired = "Expired"
	// ReasonPlanChanged means that the remaining steps differ from the approved steps.
	ReasonPlanChanged = "PlanChanged"
	// ReasonGenerationChanged means that the object's spec has changed since.
	ReasonGenerationChanged = "GenerationChanged"
	// ReasonObjectGone means that the object was deleted.
	ReasonObjectGone = "ObjectGone"
	// ReasonDone means that all steps have been taken.
	ReasonDone = "Done"
	// ReasonUnknown means that the remaining steps are not known now.
	ReasonUnknown = "Unknown"
	// ReasonApproverIsAuthor means that a policy requires another user than the author of the change.
	ReasonApproverIsAuthor = "ApproverIsAuthor"
	// ReasonAuthorUnknown means that a policy requires another user than the author, and the author
	// is not known.
	ReasonAuthorUnknown = "AuthorUnknown"
)

// RemainingPlan is an object with its remaining steps.
type RemainingPlan struct {
	Object     Object
	UID        string
	Generation int64
	// Author is the user who made this generation; empty if unknown.
	Author string
	// OtherUser reports whether a policy refuses approvals by the author.
	OtherUser bool
	// Steps are the steps of the present plan. Repairs among them need no approval, and do
	// not count.
	Steps []lifecycle.Step
	// Unknown is the reason why the plan is not known; empty if it is known.
	Unknown string
}

// ApprovalState reports whether an approval is valid, with a reason and a message.
type ApprovalState struct {
	Valid           bool
	Reason, Message string
}

// ApprovalStateOf returns the state of the approval for the object now.
func ApprovalStateOf(a *v1alpha1.Approval, ahead RemainingPlan, now time.Time) ApprovalState {
	about := a.Spec.TargetRef
	switch {
	case about.UID != ahead.UID:
		return ApprovalState{false, ReasonObjectGone, fmt.Sprintf("The approved %s %s was deleted, and another object has its name.", about.Kind, about.Name)}
	case about.Generation != ahead.Generation:
		return ApprovalState{false, ReasonGenerationChanged, fmt.Sprintf(
			"It approves generation %d of the object, which is now at generation %d. Approve again.", about.Generation, ahead.Generation)}
	}
	left := changes(ahead.Steps)
	covered, _ := covers(a.Spec.Steps, ahead.Steps)
	switch {
	case spent(a), len(left) == 0 && !covered && ahead.Unknown == "":
		return ApprovalState{false, ReasonDone, "All steps have been taken."}
	case ahead.Unknown != "":
		return ApprovalState{false, ReasonUnknown, "The remaining steps are not known: " + ahead.Unknown}
	case !a.Spec.ExpirationTime.After(now):
		return ApprovalState{false, ReasonExpired, fmt.Sprintf("It was valid until %s. Approve again.", moment(a.Spec.ExpirationTime.Time, nil))}
	case !covered:
		return ApprovalState{false, ReasonPlanChanged, fmt.Sprintf("The plan is now %s, and the approved plan was %s. Review the plan, and approve again.", names(ahead.Steps), approvedNames(a.Spec.Steps))}
	case ahead.OtherUser:
		return byOther(a, ahead)
	}
	return approvedUntil(a)
}

// byOther is the state of a complete approval if the author of a change may not approve it.
func byOther(a *v1alpha1.Approval, ahead RemainingPlan) ApprovalState {
	switch ahead.Author {
	case "":
		return ApprovalState{false, ReasonAuthorUnknown, fmt.Sprintf("A policy accepts no approval by the author of a change, and the author of generation %d is not known.", ahead.Generation)}
	case a.Spec.Approver:
		return ApprovalState{false, ReasonApproverIsAuthor, fmt.Sprintf("A policy accepts no approval by the author of a change, and %s made generation %d. Another user must approve.", a.Spec.Approver, ahead.Generation)}
	}
	return approvedUntil(a)
}

func approvedUntil(a *v1alpha1.Approval) ApprovalState {
	return ApprovalState{true, ReasonApproved, fmt.Sprintf("The steps may be taken until %s.", moment(a.Spec.ExpirationTime.Time, nil))}
}

// spent reports whether all steps of the approval have been taken once. A spent approval
// does not become valid again when the same steps are due again.
func spent(a *v1alpha1.Approval) bool {
	c := apimeta.FindStatusCondition(a.Status.Conditions, ConditionValid)
	return c != nil && c.Reason == ReasonDone
}

// changes returns the steps that are no repairs.
func changes(steps []lifecycle.Step) []lifecycle.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s lifecycle.Step) bool { return s.Intent == lifecycle.IntentRepair })
}

// covers reports whether the remaining steps are the last of the approved steps. Repairs
// without approval may remain, too; whole reports that there are none.
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

// maxNamed is how many steps a message names.
const maxNamed = 5

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
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}

func wholly(a *v1alpha1.Approval, ahead RemainingPlan) bool {
	_, whole := covers(a.Spec.Steps, ahead.Steps)
	return whole
}

// ApprovalCheckOf checks the approvals of an object for its next step. The approval that
// expires last counts. A repair that needs an approval must be among the approved steps.
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
		case !w.Valid && w.Reason != ReasonDone:
			p.Because = fmt.Sprintf("the approval %q is not valid (%s)", a.Name, w.Reason)
		}
	}
	if best != nil {
		p.Approval = &history.Approval{Name: best.Name, By: best.Spec.Approver, Reason: best.Spec.Reason}
	}
	return p
}
