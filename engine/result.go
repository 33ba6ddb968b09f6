package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// result is what one turn found out and did; tell makes everything public of it.
type result[T lifecycle.Resource, W any] struct {
	key        types.NamespacedName
	before     T      // as read, for what is new
	obj        T      // as it will be told
	author     string // the field manager that set its spec; empty if nobody knows
	seen       W
	observed   bool
	changes    []apply.Change
	blocked    *blocked            // what cannot be provided while repairs go on; nil if all can
	drift      bool                // the changes repair what someone else changed
	drifts     []apply.Drift       // what someone else changed and is left as it is
	overdue    []string            // Secrets that are not renewed while it is paused
	spared     []string            // what is provided where drift is only reported
	sight      *lifecycle.Decision // what would be decided if it were not paused
	issued     []certificate.Issued
	due        time.Time // when a certificate is to be looked at again; zero if there is none
	decision   lifecycle.Decision
	taken      *stepResult
	refusals   []lifecycle.Refusal
	queued     bool                // it waits for a slot of the budget
	held       *heldDeletion[T, W] // the deletion, if policies hold it
	changeHeld bool                // policies hold a change, and the application serves as before
	approval   *history.Approval   // what let the step pass, if it needed one
	bypass     *history.Bypass     // what let it pass policies that hold it
	expires    time.Time           // when an approval of the object ends; zero if none does
	same       bool                // the status says it all already
	again      time.Time           // when a wait behind a held wish is looked at; zero if there is none
	later      time.Time           // when it is told what is not told now; zero if it is
	done       []apply.Change      // the changes of this turn, and of those before that told nothing
	began      time.Time
	decided    bool // the decision is about the object's present generation
	paused     bool
	panicked   bool
	released   bool

	cause error

	lostLease bool // nothing more may be done or told
}

// stepResult is a step that was acted on.
type stepResult struct {
	step  lifecycle.Step
	began time.Time
	took  time.Duration
	err   error
	own   bool // it is the engine's own step, and no gate was asked
}

// over reports whether the turn has its result: anything but a step to be taken.
func (r *result[T, W]) over() bool {
	outcome := r.decision.Outcome
	leavingSettled := outcome == lifecycle.OutcomeSettled && deleting(r.obj) && !r.released
	return r.paused || r.released || outcome != lifecycle.OutcomeNone && outcome != lifecycle.OutcomeProceed && !leavingSettled || r.taken != nil
}

// failed tells a step that went wrong from one that was not even begun, which is
// nothing to be remembered.
func (r *result[T, W]) failed(step lifecycle.Step) {
	r.cause = r.taken.err
	r.decision = explain(r.taken.err)
	switch {
	case r.decision.Reason == apiError:
		r.decision = lifecycle.RetryIn(0, "StepFailed", "The step "+step.String()+" failed: "+r.taken.err.Error())
	case r.decision.Outcome == lifecycle.OutcomeRetry:
		r.taken, r.cause = nil, nil
	}
	r.decision.Step = step
}
