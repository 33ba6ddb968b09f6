package publish

import (
	"cmp"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/engine/internal/wake"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

const (
	// BetweenSteps is the pause between two steps of one object. The cache's state, not time, keeps
	// them in order.
	BetweenSteps = time.Millisecond
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

// Requeue returns when to reconcile the object again. A wait for something that can be watched
// needs no time. retry returns the delay of a retry, which grows from one to the next.
func (r *Result) Requeue(now time.Time, retry func() time.Duration) reconcile.Result {
	d := r.Decision
	after := d.After
	switch {
	case r.Paused:
		after = 0
	case r.rests():
		after = 0 // it is due at its next attempt
	case d.Outcome == lifecycle.OutcomeProceed:
		after = BetweenSteps
	case d.Outcome == lifecycle.OutcomeWait && len(r.Refusals) > 0:
		after = heldFor(r.Refusals, d.After, now)
	case d.Outcome == lifecycle.OutcomeWait && !d.Deadline.IsZero():
		after = max(BetweenSteps, d.Heartbeat(d.Deadline.Sub(now)).After)
	case d.Outcome == lifecycle.OutcomeBlocked, d.Outcome == lifecycle.OutcomeRetry && d.After == 0:
		after = retry()
	}
	after = r.orDue(now, after)
	if r.Held != nil {
		wait := heldFor(r.Held.Refusals, 0, now)
		after = min(cmp.Or(after, wait), wait)
	}
	return reconcile.Result{RequeueAfter: after, Priority: wake.Priority(d)}
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
			after = min(after, max(BetweenSteps, r.Until.Sub(now)))
		}
	}
	return after
}

// watched reports whether the gate must be asked again and again.
func watched(r lifecycle.Refusal) bool {
	return r.Policy == "" || r.Gate == policy.GateCanary || r.Gate == policy.GateBudget
}

// orDue returns the time to the next reconcile, whatever the decision: to the check of a
// certificate, the end of an approval, a delayed status, a wait behind a step that is held or stuck,
// or the next attempt of a stuck step, if that is sooner.
func (r *Result) orDue(now time.Time, after time.Duration) time.Duration {
	for _, due := range []time.Time{r.Due, r.Expires, r.StatusDue, r.Again, r.Retry} {
		if due.IsZero() {
			continue
		}
		if in := max(BetweenSteps, due.Sub(now)); after == 0 || in < after {
			after = in
		}
	}
	return after
}
