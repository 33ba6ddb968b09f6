package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// Names of the gates of policies.
const (
	GateMaintenanceWindow = "MaintenanceWindow"
	GateFreeze            = "Freeze"
	GateApproval          = "Approval"
	GateCanary            = "Canary"
	GateBudget            = "Budget"
)

// Question asks whether one step of one object may be taken at a time.
type Question struct {
	Object Object
	Step   lifecycle.Step
	Now    time.Time
	// Deletion reports that the object is being deleted. Waves do not hold deletions, because
	// they order changes that the next wave gets too.
	Deletion bool
	// Bypass is the reason for which a user bypasses the policies; empty without a bypass.
	Bypass string
	// Author is the user who made the object's present generation; empty if unknown.
	Author     string
	Generation int64
	// FromSpec reports whether the step carries out a change of the spec since the object last
	// settled. It is called for routine steps in a freeze; nil means false.
	FromSpec func() bool
	// Permit checks the object's approvals for the step. It is called if the step needs one.
	Permit func() ApprovalCheck
	// NamespaceTerminating reports whether the object's namespace is being deleted, so that no
	// approval can be created. It is called if the step waits for one; nil means false.
	NamespaceTerminating func() bool
	// Peers returns all objects that the operator runs. It is called if there are waves.
	Peers func() ([]Peer, error)
}

// ApprovalCheck is the result of the approvals for a step.
type ApprovalCheck struct {
	// Approval is the approval that permits the step; nil if none does.
	Approval *history.Approval
	// Because is the reason why the existing approvals do not permit it.
	Because string
}

// Verdict is the answer to a question.
type Verdict struct {
	// Refusals are the gates of policies that hold the step.
	Refusals []lifecycle.Refusal
	// Bypassed are the gates that would hold the step without the bypass.
	Bypassed []lifecycle.Refusal
	// Approval is the approval that permits the step; nil if the step needs none.
	Approval *history.Approval
}

// Judge evaluates the policies, all of which select the object, and returns every policy
// that holds the step. Repairs pass, unless a policy holds them too. Routine steps pass
// everything but a freeze, which holds the steps of a change of the spec.
func (s Set) Judge(q Question) Verdict {
	var v Verdict
	if q.Step.Class.IsDisruptive() {
		for _, p := range s {
			v.Refusals = append(v.Refusals, p.judge(q, &v)...)
		}
	} else {
		v.Refusals = s.judgeRoutine(q)
	}
	if q.Bypass != "" && len(v.Refusals) > 0 {
		v.Refusals, v.Bypassed = nil, v.Refusals
	}
	return v
}

// judgeRoutine evaluates a step that no client notices.
func (s Set) judgeRoutine(q Question) []lifecycle.Refusal {
	var all []lifecycle.Refusal
	for _, p := range s {
		all = append(all, p.frozen(q.Now)...)
	}
	if len(all) == 0 || !q.changesSpec() {
		return nil
	}
	return all
}

// changesSpec reports whether the step carries out a change of the spec.
func (q Question) changesSpec() bool {
	change := q.Step.Intent != lifecycle.IntentRepair && q.Step.Cause == lifecycle.CauseSpecChange
	return change && q.FromSpec != nil && q.FromSpec()
}

func (p *Policy) judge(q Question, v *Verdict) []lifecycle.Refusal {
	repair := q.Step.Intent == lifecycle.IntentRepair
	var all []lifecycle.Refusal
	if !repair || p.spec.RepairPolicy == v1alpha1.RepairPolicyHold {
		all = slices.Concat(p.frozen(q.Now), p.closed(q.Now), p.unapproved(q, v))
	}
	if !repair && !q.Deletion {
		all = append(all, p.waitsForWave(q)...)
	}
	return all
}

// HoldsDeletions reports whether any of the policies can hold a deletion, now or later. A
// freeze that has ended also counts: the admission policy governor-unheld-deletions applies
// the same rule, and admission policies cannot read the time.
func (s Set) HoldsDeletions() bool {
	return slices.ContainsFunc(s, func(p *Policy) bool {
		return p.spec.Freeze != nil || len(p.spec.Windows) > 0 || p.spec.Approval != nil
	})
}

func (p *Policy) refuse(gate string, until time.Time, format string, args ...any) []lifecycle.Refusal {
	return []lifecycle.Refusal{{Gate: gate, Policy: p.Name, Until: until.UTC(), Message: fmt.Sprintf(format, args...)}}
}

func (p *Policy) frozen(now time.Time) []lifecycle.Refusal {
	f := p.spec.Freeze
	switch {
	case f == nil:
		return nil
	case f.Until == nil:
		return p.refuse(GateFreeze, time.Time{}, "frozen (%s) until its spec.freeze is removed", f.Reason)
	case f.Until.After(now):
		return p.refuse(GateFreeze, f.Until.Time, "frozen (%s) until %s", f.Reason, moment(f.Until.Time, nil))
	}
	return nil
}

func (p *Policy) closed(now time.Time) []lifecycle.Refusal {
	if len(p.spec.Windows) == 0 {
		return nil
	}
	s := p.windows.at(now)
	switch {
	case s.open:
		return nil
	case s.opens.IsZero():
		return p.refuse(GateMaintenanceWindow, time.Time{}, "none of its maintenance windows ever opens; correct the policy (%s)", strings.Join(p.Faults, "; "))
	}
	return p.refuse(GateMaintenanceWindow, s.opens, "no maintenance window is open; the next opens %s", moment(s.opens, s.zone))
}

func (p *Policy) unapproved(q Question, v *Verdict) []lifecycle.Refusal {
	a := p.spec.Approval
	if a == nil || !slices.Contains(a.Classes, v1alpha1.StepClass(q.Step.Class)) {
		return nil
	}
	permit := q.Permit()
	if permit.Approval != nil {
		v.Approval = permit.Approval
		return nil
	}
	because := cmp.Or(permit.Because, "there is none")
	return p.refuse(GateApproval, time.Time{}, "a step that is %s needs an approval%s, and %s; %s", q.Step.Class, p.approver(q), because, q.remedy(p))
}

// approver names the user whose approval the policy does not accept.
func (p *Policy) approver(q Question) string {
	switch {
	case !p.wantsOtherUser():
		return ""
	case q.Author == "":
		return " by another user than its author, who is not known"
	}
	return " by another user than its author " + q.Author
}

func (p *Policy) wantsOtherUser() bool {
	return p.spec.Approval != nil && p.spec.Approval.Approver == v1alpha1.ApproverOtherUser
}

// WantsOtherUser reports whether any of the policies refuses approvals by the author of a change.
func (s Set) WantsOtherUser() bool { return slices.ContainsFunc(s, (*Policy).wantsOtherUser) }

// remedy returns what a user can do about a step that waits for an approval.
func (q Question) remedy(p *Policy) string {
	about := fmt.Sprintf("%s %s -n %s", strings.ToLower(q.Object.Kind), q.Object.Name, q.Object.Namespace)
	switch {
	case q.NamespaceTerminating != nil && q.NamespaceTerminating():
		return fmt.Sprintf("none can be created, because the namespace is being deleted; permit the deletion with `kubectl governor bypass %s --reason REASON`", about)
	case p.wantsOtherUser() && q.Author == "":
		return fmt.Sprintf("a user claims the change with `kubectl annotate %s --overwrite %s=USER %s=%d`, where USER is that user's own name, and another approves with `kubectl governor approve %s`",
			about, lifecycle.AnnotationAuthor, lifecycle.AnnotationAuthorGeneration, q.Generation, about)
	}
	return fmt.Sprintf("approve with `kubectl governor approve %s`", about)
}
