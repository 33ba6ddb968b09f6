// Package publish makes the result of a reconcile public. Status, event, log, metrics, history, the
// use of the budget and the time of the next reconcile are functions of the [Result], which knows no
// application.
package publish

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Publisher makes the results of one application public.
type Publisher struct {
	// Gates are the names of the application's gates, in their order.
	Gates     []string
	Client    client.Client
	Tracker   *readyourwrites.Tracker
	Recorder  recorder.EventRecorder
	History   *historystore.Store
	Revisions *revision.Store
	Policies  *enforce.Kind
	Budget    *budget.Budget
	Progress  *metrics.Progress
	Backoff   workqueue.TypedRateLimiter[types.NamespacedName]
	Throttle  Throttle
	Now       func() time.Time
	// Holder returns a name of the object that is unique in the operator, and Wake reconciles it.
	Holder func(key types.NamespacedName) string
	Wake   func(key types.NamespacedName)

	waits memory.Waits
}

// Views are what the planner adds to a result. Each is asked only if it is needed.
type Views struct {
	// Ahead is what is left to do for the object, as approvals are compared with it.
	Ahead func() policy.RemainingPlan
	// Evidence are the facts behind the step.
	Evidence func(step lifecycle.Step) []string
}

// Publish makes the result public and returns when to reconcile the object again. The status is
// described already. Everything is tried, whatever else fails.
func (p *Publisher) Publish(ctx context.Context, r *Result, v Views) (reconcile.Result, error) {
	r.Same = equality.Semantic.DeepEqual(r.Before, r.Object)
	r.StatusDue = p.Throttle.due(r)
	p.Throttle.collect(r)
	r.Log(logf.FromContext(ctx))
	p.Announce(r)
	r.Measure(p.Progress)
	p.noteHolds(r)
	p.updateApprovals(ctx, r, v.Ahead)
	p.updateBudget(r)
	err := errors.Join(
		p.record(ctx, r, v.Evidence),
		p.remember(ctx, r),
		p.writeStatus(ctx, r), // also when what is kept besides cannot be
	)
	if err != nil {
		return reconcile.Result{}, err
	}
	return p.Requeue(r), nil
}

// Announce records one event at most: an event costs the API server as much as a small object.
func (p *Publisher) Announce(r *Result) {
	a := r.Event()
	if a.Reason == "" || !r.StatusDue.IsZero() {
		return
	}
	const longest = 1000 // the API allows little more
	if len(a.Note) > longest {
		a.Note = a.Note[:longest] + "…"
	}
	p.Recorder.Eventf(r.Object, nil, a.Kind, a.Reason, a.Action, "%s", a.Note)
}

// noteHolds records which policies hold the object, and whether it waits for a wave before its own.
func (p *Publisher) noteHolds(r *Result) {
	p.Policies.Store.Note(p.Holder(r.Key), r.HoldingPolicies())
	p.Policies.Store.WaitForWave(p.Holder(r.Key), r.Refusals, func() { p.Wake(r.Key) })
}

// updateApprovals writes into the approvals of the object whether they are valid now. After a
// step it leaves that to the next reconcile, which observes the new world.
func (p *Publisher) updateApprovals(ctx context.Context, r *Result, ahead func() policy.RemainingPlan) {
	if r.Observed && !r.Panicked && r.Taken == nil {
		r.Expires = p.Policies.UpdateApprovals(ctx, r.Key, ahead)
	}
}

// updateBudget updates the budget after a reconcile. An object that is settled, Blocked, or waits
// for a user or a time is not disrupted: other objects use its slot meanwhile.
func (p *Publisher) updateBudget(r *Result) {
	holder, outcome := p.Holder(r.Key), r.Decision.Outcome
	byPolicy := slices.ContainsFunc(r.Refusals, func(r lifecycle.Refusal) bool { return r.Policy != "" })
	switch {
	case r.Queued: // it waits for its turn
	case r.Paused, byPolicy, outcome == lifecycle.OutcomeSettled, outcome == lifecycle.OutcomeBlocked:
		p.Budget.Release(holder)
	default:
		p.Budget.Withdraw(holder)
	}
	if r.Taken != nil && r.Taken.Err == nil {
		p.Budget.Moves(holder)
	}
}

// record adds to the history what was done or refused, and what was waited for.
func (p *Publisher) record(ctx context.Context, r *Result, evidence func(lifecycle.Step) []string) error {
	waited := p.waits.Note(r.Key, r.Decision, r.Taken != nil, p.Now())
	entry := r.Entry(p.Gates)
	if entry != nil && r.judged() {
		entry.Policies, entry.Evidence = p.Policies.Effective(r.Object).Names, evidence(entry.Step)
	}
	return p.History.Record(ctx, r.Object, waited, entry)
}

// remember keeps the accepted spec as a revision, once, and that it has settled, once;
// where drift is only reported also what is provided for it, when that is another.
func (p *Publisher) remember(ctx context.Context, r *Result) error {
	if !r.accepted() {
		return nil
	}
	settled := r.Decision.Outcome == lifecycle.OutcomeSettled
	_, err := p.Revisions.Save(ctx, r.Object, r.Author, settled)
	if err != nil || !settled || r.Spared == nil {
		return err
	}
	return p.Revisions.RecordApplied(ctx, r.Object, r.Spared)
}

// writeStatus writes the status if it has changed and is not delayed.
func (p *Publisher) writeStatus(ctx context.Context, r *Result) error {
	if r.Same || !r.StatusDue.IsZero() {
		return nil
	}
	err := p.Client.Status().Update(ctx, r.Object)
	switch {
	case apierrors.IsConflict(err):
		r.Decision = explain.Error(err)
		return nil
	case err != nil:
		return client.IgnoreNotFound(err)
	}
	p.Tracker.Wrote(r.Key, r.Object)
	p.Throttle.noteWritten(r)
	return nil
}

// Requeue returns when to reconcile the object again.
func (p *Publisher) Requeue(r *Result) reconcile.Result {
	d := r.Decision
	if d.Outcome != lifecycle.OutcomeBlocked && d.Outcome != lifecycle.OutcomeRetry {
		p.Backoff.Forget(r.Key)
	}
	return r.Requeue(p.Now(), func() time.Duration { return p.Backoff.When(r.Key) })
}

// Release drops what is known of an object that is being deleted and needs no more work.
func (p *Publisher) Release(key types.NamespacedName) {
	p.Progress.Forget(key)
	p.Throttle.forget(key)
	p.waits.Forget(key)
}

// Forget drops what is known of an object that is gone.
func (p *Publisher) Forget(key types.NamespacedName) {
	p.Release(key)
	p.Backoff.Forget(key)
}
