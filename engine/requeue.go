package engine

import (
	"cmp"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

const (
	// betweenSteps is the pause between two steps of one object. The cache's state, not time, keeps
	// them in order.
	betweenSteps = time.Millisecond
	// heldInterval is the interval at which a held step is judged again, for gates on facts that
	// cannot be watched.
	heldInterval = 15 * time.Second
	// approvalInterval is the same where only a user or a time lets the step pass. Both trigger a
	// reconcile, unless the clock is set forward.
	approvalInterval = 10 * time.Minute
	// observeInterval is the shortest interval at which an application that cannot be watched is
	// observed while its step is held.
	observeInterval = 30 * time.Second
)

// requeue returns when to reconcile the object again. A wait for something that can be watched
// needs no time.
func (e *engine[T, W]) requeue(r *result) reconcile.Result {
	d := r.decision
	if d.Outcome != lifecycle.OutcomeBlocked && d.Outcome != lifecycle.OutcomeRetry {
		e.backoff.Forget(r.key)
	}
	return r.requeue(e.now(), func() time.Duration { return e.backoff.When(r.key) })
}

// requeue is that of the engine as a pure function. retry returns the delay of a retry, which
// grows from one to the next.
func (r *result) requeue(now time.Time, retry func() time.Duration) reconcile.Result {
	d := r.decision
	after := d.After
	switch {
	case r.paused:
		after = 0
	case d.Outcome == lifecycle.OutcomeProceed:
		after = betweenSteps
	case d.Outcome == lifecycle.OutcomeWait && len(r.refusals) > 0:
		after = heldFor(r.refusals, d.After, now)
	case d.Outcome == lifecycle.OutcomeWait && !d.Deadline.IsZero():
		after = max(betweenSteps, d.Heartbeat(d.Deadline.Sub(now)).After)
	case d.Outcome == lifecycle.OutcomeBlocked, d.Outcome == lifecycle.OutcomeRetry && d.After == 0:
		after = retry()
	}
	after = r.orDue(now, after)
	if r.held != nil {
		wait := heldFor(r.held.refusals, 0, now)
		after = min(cmp.Or(after, wait), wait)
	}
	return reconcile.Result{RequeueAfter: after, Priority: priority(d)}
}

// heldFor returns for how long to leave a held step: until the first gate opens by itself, or
// for the application's heartbeat.
func heldFor(refusals []lifecycle.Refusal, heartbeat time.Duration, now time.Time) time.Duration {
	after := heldInterval
	if !slices.ContainsFunc(refusals, watched) {
		after = approvalInterval
	}
	if heartbeat > 0 {
		after = min(after, max(heartbeat, observeInterval))
	}
	for _, r := range refusals {
		if !r.Until.IsZero() {
			after = min(after, max(betweenSteps, r.Until.Sub(now)))
		}
	}
	return after
}

// watched reports whether the gate must be asked again and again.
func watched(r lifecycle.Refusal) bool {
	return r.Policy == "" || r.Gate == policy.Canary || r.Gate == policy.Budget
}

// orDue returns the time to the next reconcile, whatever the decision: to the check of a
// certificate, the end of an approval, a delayed status, or a wait behind a held change, if that
// is sooner.
func (r *result) orDue(now time.Time, after time.Duration) time.Duration {
	for _, due := range []time.Time{r.due, r.expires, r.statusDue, r.again} {
		if due.IsZero() {
			continue
		}
		if in := max(betweenSteps, due.Sub(now)); after == 0 || in < after {
			after = in
		}
	}
	return after
}
