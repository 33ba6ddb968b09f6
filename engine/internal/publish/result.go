package publish

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// Result is what one reconcile found out and did. It knows no application: status, events,
// log, metrics, history and the time of the next reconcile follow from it alone.
type Result struct {
	Key      types.NamespacedName
	Before   lifecycle.Resource // as read, to compare with
	Object   lifecycle.Resource // with the new status
	Author   string             // the field manager that set the spec; empty if not known
	Began    time.Time
	Observed bool
	Decision lifecycle.Decision
	Decided  bool           // the decision is about the present generation of the object
	Planned  lifecycle.Step // what the planner wants taken; zero for other steps
	Taken    *Taken
	Cause    error // of the decision, if an error led to it

	// What was applied.
	Changes []apply.Change
	Done    []apply.Change       // the changes, and those of earlier reconciles that published nothing
	Issued  []certificate.Issued // certificates
	Blocked *hold.Blocked        // objects that cannot be applied while repairs go on; nil if all can
	Drift   bool                 // the changes repair what others changed
	Drifts  []apply.Drift        // what others changed and policies leave in place
	Spared  []string             // the objects that were applied where drift is only reported

	Stuck lifecycle.Decision // about the first step that comes to nothing; not set if none does

	// What policies and gates said.
	Refusals   []lifecycle.Refusal
	Queued     bool              // it waits for a slot of the budget
	ChangeHeld bool              // policies hold a change, and the application serves as before
	Held       *HeldDeletion     // nil if policies hold no deletion
	Approval   *history.Approval // that let the step pass, if it needed one
	Bypass     *history.Bypass   // that let the step pass policies which hold it

	// What a paused object would do.
	Paused  bool
	Sight   *lifecycle.Decision
	Overdue []string // Secrets that are not renewed meanwhile

	// Times at which to reconcile again; zero if there is none.
	Due       time.Time // of a certificate
	Expires   time.Time // of an approval
	Again     time.Time // of a wait behind a step that is held or stuck
	Retry     time.Time // of a stuck step
	StatusDue time.Time // of a status that is not published now

	Same      bool // the status says it all already
	Panicked  bool
	Released  bool // the finalizer is removed: the object belongs to Kubernetes' garbage collection
	LostLease bool // nothing more may be done or published
}

// Taken is a step that was acted on.
type Taken struct {
	Step  lifecycle.Step
	Began time.Time
	Took  time.Duration
	Err   error
	Own   bool // it is the engine's own step, and no gate was asked
}

// HeldDeletion is a deletion that policies hold.
type HeldDeletion struct {
	Step     lifecycle.Step
	Refusals []lifecycle.Refusal
}

// IsDecided reports whether the turn has its result: anything but a step to be taken.
func (r *Result) IsDecided() bool {
	outcome := r.Decision.Outcome
	leavingSettled := outcome == lifecycle.OutcomeSettled && r.Object.GetDeletionTimestamp() != nil && !r.Released
	return r.Paused || r.Released || outcome != lifecycle.OutcomeNone && outcome != lifecycle.OutcomeProceed && !leavingSettled || r.Taken != nil
}

// StepFailed explains the error of a step. A step that did not begin is not recorded.
func (r *Result) StepFailed(step lifecycle.Step) {
	r.Cause = r.Taken.Err
	r.Decision = explain.Error(r.Taken.Err)
	said := (*lifecycle.DecisionError)(nil)
	switch {
	case r.Decision.Reason == explain.APIError:
		r.Decision = lifecycle.RetryIn(0, "StepFailed", "The step "+step.String()+" failed: "+r.Taken.Err.Error())
	case r.Decision.Outcome == lifecycle.OutcomeRetry:
		r.Taken, r.Cause = nil, nil
	case !errors.As(r.Cause, &said):
		r.Decision.Message = fmt.Sprintf("The step %s failed: %s", step, r.Decision.Message)
	}
	r.Decision.Step = step
}

// StepTimedOut explains a step whose effect is unknown. The next turn observes it.
func (r *Result) StepTimedOut(step lifecycle.Step, timeout time.Duration) {
	r.Decision = lifecycle.RetryIn(0, "StepTimedOut", fmt.Sprintf(
		"The step %s did not return within %s. Whether it took effect is unknown; Governor observes the application again.", step, timeout))
	r.Decision.Step = step
}

// Hold makes the decision a held one.
func (r *Result) Hold(d lifecycle.Decision, refusals []lifecycle.Refusal) {
	after := d.After // what cannot be watched is looked at all the same
	r.Decision, r.Refusals = lifecycle.Held(d.Step, refusals...), refusals
	r.Decision.After = after
}

// ObserveAgain makes a wait or a decision that is not carried out now be observed as if it were.
func (r *Result) ObserveAgain(d lifecycle.Decision, now time.Time) {
	if d.After > 0 {
		r.Again = now.Add(d.After)
	}
	if !d.Deadline.IsZero() && (r.Again.IsZero() || d.Deadline.Before(r.Again)) {
		r.Again = d.Deadline
	}
}

// accepted reports whether the spec is to be stored as a revision: a step was taken for it or
// refused, or it has failed, or everything is as declared.
func (r *Result) accepted() bool {
	if !r.Decided || r.Paused || r.Object.GetDeletionTimestamp() != nil {
		return false
	}
	return r.Taken != nil || len(r.Refusals) > 0 || r.Decision.Failed || r.Decision.Outcome == lifecycle.OutcomeSettled
}

// HoldingPolicies returns the names of the policies that hold the object now.
func (r *Result) HoldingPolicies() []string {
	refusals := r.Refusals
	if r.Held != nil {
		refusals = slices.Concat(refusals, r.Held.Refusals)
	}
	var names []string
	for _, refusal := range refusals {
		if refusal.Policy != "" && !slices.Contains(names, refusal.Policy) {
			names = append(names, refusal.Policy)
		}
	}
	return names
}
