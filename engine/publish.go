package engine

import (
	"cmp"
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
	"github.com/governor-dev/governor/lifecycle/policy"
)

const (
	// onward is the pause between two steps of one object. Freshness, not time,
	// keeps them in order.
	onward = time.Millisecond
	// held is when a held step is asked for again, for gates on what cannot be
	// watched.
	held = 15 * time.Second
	// wordless is the same where only a person or a time lets the step pass: both wake
	// it, unless somebody puts the clock forward.
	wordless = 10 * time.Minute
	// still is how often, at most, an application that cannot be watched is looked at
	// while it is held so.
	still = 30 * time.Second
)

// publish is the only place that makes a turn public: status, events, history,
// metrics, and when the next turn is.
func (e *engine[T, W]) publish(ctx context.Context, r *result[T, W]) (reconcile.Result, error) {
	if r.released {
		return reconcile.Result{}, nil
	}
	e.describe(ctx, r)
	r.same = equality.Semantic.DeepEqual(r.before, r.obj)
	r.later = e.later(r)
	e.recollect(r)
	e.log(ctx, r)
	e.announce(r)
	e.measure(r)
	e.stand(r)
	e.value(ctx, r)
	e.pace(r)
	err := errors.Join(
		e.history.record(ctx, r.obj, e.waits.Note(r.key, r.decision, r.taken != nil, e.now()), e.entry(r)),
		e.remember(ctx, r),
		e.writeStatus(ctx, r), // also when what is kept besides cannot be
	)
	if err != nil {
		return reconcile.Result{}, err
	}
	return e.nextTurn(r), nil
}

// describe writes status fields and conditions into the object.
func (e *engine[T, W]) describe(ctx context.Context, r *result[T, W]) {
	own := e.own(ctx, r) // first: it may find that the planner fails on this object
	observedGeneration, conditions := r.obj.StatusFields()
	facts := lifecycle.StandardConditions(r.decision, own)
	if r.paused {
		facts = pausedFacts(r.decision.Message, *conditions, r.sight)
	}
	// A paused object that was seen is judged by its present spec: nothing else will be
	// done for it, and clients that wait for the generation do not wait for the end of the pause.
	if r.paused && r.sight != nil || !r.paused && (r.decided || r.decision.Outcome == lifecycle.OutcomeBlocked) {
		*observedGeneration = r.obj.GetGeneration()
	}
	if own == nil {
		own = unchanged(*conditions, facts)
	}
	facts = append(append(facts, own...), rolledBack(r.obj)...)
	facts = slices.Concat(facts, driftFact(r.drifts), overdueFact(r.overdue), r.heldFact(), r.blocked.fact())
	r.changeHeld = slices.ContainsFunc(facts, func(c lifecycle.Condition) bool { return c.Type == lifecycle.ConditionChangeHeld })
	*conditions = lifecycle.Merge(*conditions, facts, *observedGeneration, metav1.NewTime(e.now()))
}

// own lets the planner write its status fields and returns its conditions, or nil
// if nothing new was seen.
func (e *engine[T, W]) own(ctx context.Context, r *result[T, W]) []lifecycle.Condition {
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

// unchanged returns the application's conditions as they are, for a turn that
// could not see anything new.
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

func (e *engine[T, W]) log(ctx context.Context, r *result[T, W]) {
	log := logf.FromContext(ctx)
	for _, c := range r.changes {
		log.Info("provided", "change", c.String())
	}
	for _, i := range r.issued {
		log.Info("certificate", "secret", i.Secret, "what", i.What, "until", i.Until, "reason", i.Reason)
	}
	switch fresh := r.news(); {
	case fresh && r.cause != nil:
		log.Error(r.cause, r.decision.String())
	case fresh:
		log.Info(r.decision.String())
	case r.cause != nil:
		log.V(1).Info(r.decision.String(), "cause", r.cause.Error())
	}
}

// news reports whether the decision says something else than the object's status, and
// the status will say it.
func (r *result[T, W]) news() bool {
	d, said := r.decision, r.said()
	return r.later.IsZero() && d.IsSet() && (said.Reason != d.Reason || said.Status != r.readiness())
}

// readiness is the status of Ready that the decision leads to.
func (r *result[T, W]) readiness() metav1.ConditionStatus {
	return lifecycle.StatusOf(r.changeHeld || r.decision.Outcome == lifecycle.OutcomeSettled)
}

// said is what the object's status says so far; the zero value if it says nothing.
func (r *result[T, W]) said() metav1.Condition {
	_, conditions := r.before.StatusFields()
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// writeStatus writes the status if it differs from what was read and is told now.
func (e *engine[T, W]) writeStatus(ctx context.Context, r *result[T, W]) error {
	if r.same || !r.later.IsZero() {
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
	e.noteTold(r)
	return nil
}

// nextTurn says when the object is looked at again. Whoever waits for something
// that can be watched is woken by it and needs no time.
func (e *engine[T, W]) nextTurn(r *result[T, W]) reconcile.Result {
	d := r.decision
	if d.Outcome != lifecycle.OutcomeBlocked && d.Outcome != lifecycle.OutcomeRetry {
		e.backoff.Forget(r.key)
	}
	result := reconcile.Result{RequeueAfter: d.After, Priority: priority(d)}
	switch {
	case r.paused:
		result.RequeueAfter = 0
	case d.Outcome == lifecycle.OutcomeProceed:
		result.RequeueAfter = onward
	case d.Outcome == lifecycle.OutcomeWait && len(r.refusals) > 0:
		result.RequeueAfter = e.heldFor(r.refusals, d.After)
	case d.Outcome == lifecycle.OutcomeWait && !d.Deadline.IsZero():
		result.RequeueAfter = max(onward, d.Heartbeat(d.Deadline.Sub(e.now())).After)
	case d.Outcome == lifecycle.OutcomeBlocked, d.Outcome == lifecycle.OutcomeRetry && d.After == 0:
		result.RequeueAfter = e.backoff.When(r.key)
	}
	result.RequeueAfter = e.orDue(r, result.RequeueAfter)
	if r.held != nil {
		wait := e.heldFor(r.held.refusals, 0)
		result.RequeueAfter = min(cmp.Or(result.RequeueAfter, wait), wait)
	}
	return result
}

// heldFor is how long to leave a held step: until the first gate opens by itself, or
// the application's heartbeat.
func (e *engine[T, W]) heldFor(refusals []lifecycle.Refusal, heartbeat time.Duration) time.Duration {
	after := held
	if !slices.ContainsFunc(refusals, watched) {
		after = wordless
	}
	if heartbeat > 0 {
		after = min(after, max(heartbeat, still))
	}
	for _, r := range refusals {
		if !r.Until.IsZero() {
			after = min(after, max(onward, r.Until.Sub(e.now())))
		}
	}
	return after
}

// watched reports whether the gate has to be asked again and again.
func watched(r lifecycle.Refusal) bool {
	return r.Policy == "" || r.Gate == policy.Canary || r.Gate == policy.Budget
}

// orDue is the time to the next turn, or to the next look at a certificate, at the end of
// an approval, at a status that was put off, or at a wait behind a held wish if that is
// sooner, whatever the decision.
func (e *engine[T, W]) orDue(r *result[T, W], after time.Duration) time.Duration {
	for _, due := range []time.Time{r.due, r.expires, r.later, r.again} {
		if due.IsZero() {
			continue
		}
		if in := max(onward, due.Sub(e.now())); after == 0 || in < after {
			after = in
		}
	}
	return after
}

// stand tells which policies hold the object now, and what it waits for.
func (e *engine[T, W]) stand(r *result[T, W]) {
	var holding []string
	refusals := r.refusals
	if r.held != nil {
		refusals = slices.Concat(refusals, r.held.refusals)
	}
	for _, refusal := range refusals {
		if refusal.Policy != "" && !slices.Contains(holding, refusal.Policy) {
			holding = append(holding, refusal.Policy)
		}
	}
	e.operator.policies.Note(e.holder(r.key), holding)
	e.operator.policies.WaitForWave(e.holder(r.key), r.refusals, func() { e.Wake(r.key) })
}
