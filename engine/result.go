package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// reconciliation is one reconcile of one object: the object, the world that it was decided in,
// and the result, which is published.
type reconciliation[T lifecycle.Resource, W any] struct {
	result

	obj  T // the same as result.object
	seen W
	// actFor is the object that the step acts for: obj, or obj with the spec that worked last.
	actFor T

	// heldIn is where a held deletion was judged; nil if policies hold none.
	heldIn *deletionWorld[T, W]
}

func newReconciliation[T lifecycle.Resource, W any](obj T, author string, began time.Time) *reconciliation[T, W] {
	own := obj.DeepCopyObject().(T)
	return &reconciliation[T, W]{
		result: result{key: client.ObjectKeyFromObject(obj), before: obj, object: own, author: author, began: began}, obj: own, actFor: own,
	}
}

// result is what one reconcile found out and did. It knows no application: status, events,
// log, metrics, history and the time of the next reconcile follow from it alone.
type result struct {
	key      types.NamespacedName
	before   lifecycle.Resource // as read, to compare with
	object   lifecycle.Resource // with the new status
	author   string             // the field manager that set the spec; empty if not known
	began    time.Time
	observed bool
	decision lifecycle.Decision
	decided  bool // the decision is about the present generation of the object
	taken    *stepResult
	cause    error // of the decision, if an error led to it

	// What was applied.
	changes []apply.Change
	done    []apply.Change       // the changes, and those of earlier reconciles that published nothing
	issued  []certificate.Issued // certificates
	blocked *blocked             // objects that cannot be applied while repairs go on; nil if all can
	drift   bool                 // the changes repair what others changed
	drifts  []apply.Drift        // what others changed and policies leave in place
	spared  []string             // the objects that were applied where drift is only reported

	// What policies and gates said.
	refusals   []lifecycle.Refusal
	queued     bool              // it waits for a slot of the budget
	changeHeld bool              // policies hold a change, and the application serves as before
	held       *heldDeletion     // nil if policies hold no deletion
	approval   *history.Approval // that let the step pass, if it needed one
	bypass     *history.Bypass   // that let the step pass policies which hold it

	// What a paused object would do.
	paused  bool
	sight   *lifecycle.Decision
	overdue []string // Secrets that are not renewed meanwhile

	// Times at which to reconcile again; zero if there is none.
	due       time.Time // of a certificate
	expires   time.Time // of an approval
	again     time.Time // of a wait behind a held change
	statusDue time.Time // of a status that is not published now

	same      bool // the status says it all already
	panicked  bool
	released  bool // the finalizer is removed: the object belongs to Kubernetes' garbage collection
	lostLease bool // nothing more may be done or published
}

// stepResult is a step that was acted on.
type stepResult struct {
	step  lifecycle.Step
	began time.Time
	took  time.Duration
	err   error
	own   bool // it is the engine's own step, and no gate was asked
}

// isDecided reports whether the turn has its result: anything but a step to be taken.
func (r *result) isDecided() bool {
	outcome := r.decision.Outcome
	leavingSettled := outcome == lifecycle.OutcomeSettled && deleting(r.object) && !r.released
	return r.paused || r.released || outcome != lifecycle.OutcomeNone && outcome != lifecycle.OutcomeProceed && !leavingSettled || r.taken != nil
}

// failed explains the error of a step. A step that did not begin is not recorded.
func (r *result) failed(step lifecycle.Step) {
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
