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

// Names of the gates that policies have.
const (
	MaintenanceWindow = "MaintenanceWindow"
	Freeze            = "Freeze"
	Approval          = "Approval"
	Canary            = "Canary"
	Budget            = "Budget"
)

// Question is whether one step of one object may be taken at a time.
type Question struct {
	Object Object
	Step   lifecycle.Step
	Now    time.Time
	// Deletion says that the object is being deleted. Waves do not hold deletions: they
	// are about changes that the next wave gets too.
	Deletion bool
	// Bypass is the reason for which somebody lets the object's steps pass; empty if
	// nobody does.
	Bypass string
	// Author is the user who made the object's present generation; empty if that is not known.
	Author     string
	Generation int64
	// FromSpec reports whether the step carries out a change of the spec since all was as
	// declared last. It is called for routine steps in a freeze; nil means that it does not.
	FromSpec func() bool
	// Permit says what the object's approvals say of the step. It is called if the
	// step needs one.
	Permit func() ApprovalCheck
	// NamespaceTerminating reports whether the object's namespace is being deleted, where no approval can
	// be made any more. It is called if the step waits for one; nil means that it is not.
	NamespaceTerminating func() bool
	// Peers returns all objects that the operator runs. It is called if there are waves.
	Peers func() ([]Peer, error)
}

// ApprovalCheck is what approvals say of a step.
type ApprovalCheck struct {
	// Approval is the one that lets it pass; nil if none does.
	Approval *history.Approval
	// Because says what is wrong with those that there are.
	Because string
}

// Verdict is the answer to a question.
type Verdict struct {
	// Refusals are the gates of policies that hold the step.
	Refusals []lifecycle.Refusal
	// Bypassed are those that would hold it if nobody let it pass.
	Bypassed []lifecycle.Refusal
	// Approval is what let it pass; nil if it needed none.
	Approval *history.Approval
}

// Judge asks the policies, all of which select the object. Every one that holds the
// step is in the answer. Repairs pass, unless a policy says that it holds them too.
// Routine steps pass all but a freeze, which holds those that a change of the spec asks for.
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

// judgeRoutine asks about a step that no client notices.
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

// changesSpec reports whether the step is a wish that a change of the spec has brought.
func (q Question) changesSpec() bool {
	wish := q.Step.Intent != lifecycle.IntentRepair && q.Step.Cause == lifecycle.CauseSpecChange
	return wish && q.FromSpec != nil && q.FromSpec()
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
// freeze that has ended counts as well: the admission policy governor-unheld-deletions asks
// the same question, and admission policies know no time.
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
		return p.refuse(Freeze, time.Time{}, "frozen (%s) until its spec.freeze is removed", f.Reason)
	case f.Until.After(now):
		return p.refuse(Freeze, f.Until.Time, "frozen (%s) until %s", f.Reason, moment(f.Until.Time, nil))
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
		return p.refuse(MaintenanceWindow, time.Time{}, "none of its maintenance windows ever opens; correct the policy (%s)", strings.Join(p.Faults, "; "))
	}
	return p.refuse(MaintenanceWindow, s.opens, "no maintenance window is open; the next opens %s", moment(s.opens, s.zone))
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
	because := cmp.Or(permit.Because, "nobody has approved")
	return p.refuse(Approval, time.Time{}, "a step that is %s needs an approval%s, and %s; %s", q.Step.Class, p.approver(q), because, q.remedy(p))
}

// approver says whose approval the policy does not accept.
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

// WantsOtherUser reports whether any of the policies accepts no approval by the author of a change.
func (s Set) WantsOtherUser() bool { return slices.ContainsFunc(s, (*Policy).wantsOtherUser) }

// remedy is what to do about a step that waits for an approval.
func (q Question) remedy(p *Policy) string {
	about := fmt.Sprintf("%s %s -n %s", strings.ToLower(q.Object.Kind), q.Object.Name, q.Object.Namespace)
	switch {
	case q.NamespaceTerminating != nil && q.NamespaceTerminating():
		return fmt.Sprintf("none can be made any more, because the namespace is being deleted; let it go with `kubectl governor bypass %s --reason REASON`", about)
	case p.wantsOtherUser() && q.Author == "":
		return fmt.Sprintf("a user who answers for the change says so with `kubectl annotate %s --overwrite %s=USER %s=%d`, where USER is that user's own name, and another approves with `kubectl governor approve %s`",
			about, lifecycle.AnnotationAuthor, lifecycle.AnnotationAuthorGeneration, q.Generation, about)
	}
	return fmt.Sprintf("approve with `kubectl governor approve %s`", about)
}
