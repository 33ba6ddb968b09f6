package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
)

// publish is the only place that makes a result public: status, events, log, metrics, history,
// the use of the budget, and the time of the next reconcile. Each of them is a function of the
// result.
func (e *engine[T, W]) publish(ctx context.Context, r *reconciliation[T, W]) (reconcile.Result, error) {
	if r.released {
		return reconcile.Result{}, nil
	}
	e.describe(ctx, r)
	r.same = equality.Semantic.DeepEqual(r.before, r.object)
	r.statusDue = e.statusDue(&r.result)
	e.collectChanges(&r.result)
	r.log(logf.FromContext(ctx))
	e.announce(&r.result)
	e.progress.measure(&r.result)
	e.operator.policies.Note(e.holder(r.key), r.holding())
	e.operator.policies.WaitForWave(e.holder(r.key), r.refusals, func() { e.Wake(r.key) })
	e.updateApprovals(ctx, r)
	e.updateBudget(&r.result)
	err := errors.Join(
		e.history.record(ctx, r.obj, e.waits.Note(r.key, r.decision, r.taken != nil, e.now()), e.entry(r)),
		e.remember(ctx, r),
		e.writeStatus(ctx, r), // also when what is kept besides cannot be
	)
	if err != nil {
		return reconcile.Result{}, err
	}
	return e.requeue(&r.result), nil
}

// describe writes status fields and conditions into the object.
func (e *engine[T, W]) describe(ctx context.Context, r *reconciliation[T, W]) {
	own := e.own(ctx, r) // first: it may find that the planner fails on this object
	r.describe(own, e.now())
}

// describe writes the conditions and the observed generation into the object. own are the
// application's conditions, nil if nothing new was seen.
func (r *result) describe(own []lifecycle.Condition, now time.Time) {
	observedGeneration, conditions := r.object.StatusFields()
	facts := lifecycle.StandardConditions(r.decision, own)
	if r.paused {
		facts = pausedFacts(r.decision.Message, *conditions, r.sight)
	}
	// A paused object that was seen is judged by its present spec: nothing else will be
	// done for it, and clients that wait for the generation do not wait for the end of the pause.
	if r.paused && r.sight != nil || !r.paused && (r.decided || r.decision.Outcome == lifecycle.OutcomeBlocked) {
		*observedGeneration = r.object.GetGeneration()
	}
	if own == nil {
		own = unchanged(*conditions, facts)
	}
	facts = append(append(facts, own...), rolledBack(r.object)...)
	facts = slices.Concat(facts, driftFact(r.drifts), overdueFact(r.overdue), r.heldFact(), r.blocked.fact())
	r.changeHeld = slices.ContainsFunc(facts, func(c lifecycle.Condition) bool { return c.Type == lifecycle.ConditionChangeHeld })
	*conditions = lifecycle.Merge(*conditions, facts, *observedGeneration, metav1.NewTime(now))
}

// own lets the planner write its status fields and returns its conditions, or nil
// if nothing new was seen.
func (e *engine[T, W]) own(ctx context.Context, r *reconciliation[T, W]) []lifecycle.Condition {
	defer e.recoverPanic(ctx, r)
	if !r.observed || r.panicked {
		return nil
	}
	e.app.Planner.Status(r.obj, r.seen)
	d := r.decision
	if r.sight != nil {
		d = *r.sight
	}
	return e.app.Planner.Conditions(r.obj, r.seen, d)
}

// pausedFacts say what is seen and why nothing moves; the summary stays as it was if
// nothing could be seen.
func pausedFacts(why string, conditions []metav1.Condition, sight *lifecycle.Decision) []lifecycle.Condition {
	facts := []lifecycle.Condition{{
		Type: lifecycle.ConditionPaused, Status: metav1.ConditionTrue, Reason: "Paused",
		Message: why,
	}}
	if sight != nil {
		return append(facts, seenFacts(*sight)...)
	}
	for _, kind := range []string{lifecycle.ConditionReady, lifecycle.ConditionReconciling, lifecycle.ConditionStalled} {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
			facts = append(facts, lifecycle.Condition{Type: kind, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return facts
}

// unchanged returns the application's conditions as they are, for a reconcile that could not
// observe the world.
func unchanged(conditions []metav1.Condition, told []lifecycle.Condition) []lifecycle.Condition {
	known := map[string]bool{lifecycle.ConditionPaused: true, lifecycle.ConditionRolledBack: true, lifecycle.ConditionDrifted: true, lifecycle.ConditionDeletionHeld: true,
		lifecycle.ConditionCertificatesDue: true, lifecycle.ConditionResourcesBlocked: true, lifecycle.ConditionChangeHeld: true}
	for _, f := range told {
		known[f.Type] = true
	}
	var kept []lifecycle.Condition
	for _, c := range conditions {
		if !known[c.Type] {
			kept = append(kept, lifecycle.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return kept
}

// news reports whether the decision says something else than the object's status, and
// the status will say it.
func (r *result) news() bool {
	d, said := r.decision, r.said()
	return r.statusDue.IsZero() && d.IsSet() && (said.Reason != d.Reason || said.Status != r.readiness())
}

// readiness is the status of Ready that the decision leads to.
func (r *result) readiness() metav1.ConditionStatus {
	return lifecycle.StatusOf(r.changeHeld || r.decision.Outcome == lifecycle.OutcomeSettled)
}

// said is what the object's status says so far; the zero value if it says nothing.
func (r *result) said() metav1.Condition {
	_, conditions := r.before.StatusFields()
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// writeStatus writes the status if it has changed and is not delayed.
func (e *engine[T, W]) writeStatus(ctx context.Context, r *reconciliation[T, W]) error {
	if r.same || !r.statusDue.IsZero() {
		return nil
	}
	err := e.client.Status().Update(ctx, r.obj)
	switch {
	case apierrors.IsConflict(err):
		r.decision = explain(err)
		return nil
	case err != nil:
		return client.IgnoreNotFound(err)
	}
	e.tracker.Wrote(r.key, r.obj)
	e.noteStatusWritten(&r.result)
	return nil
}
