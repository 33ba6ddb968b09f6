package engine

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// pendingStatus is what was done since the status was last published.
type pendingStatus struct {
	since time.Time
	done  []apply.Change
}

// statusDue returns when to publish a delayed status and event; zero if it is published now. Only
// waits are delayed, and only if nothing holds them, others changed nothing, and no certificate
// was replaced.
func (e *engine[T, W]) statusDue(r *result) time.Time {
	if r.same || r.decision.Outcome != lifecycle.OutcomeWait || len(r.refusals) > 0 || r.newDrift() || certificates(r.issued) != "" {
		return time.Time{}
	}
	due := e.dueByInterval(r)
	if conditionsDiffer(r.before, r.object) {
		due = e.dueWhenBusy(r)
	}
	if !e.now().Before(due) {
		return time.Time{}
	}
	return due
}

// dueByInterval returns when to publish a status in which only numbers are new.
func (e *engine[T, W]) dueByInterval(r *result) time.Time {
	last, known := e.lastStatusWrite.Get(r.key)
	if !known {
		return time.Time{}
	}
	return last.Add(e.app.StatusInterval)
}

// dueWhenBusy returns when to publish a new wait: now, unless the queue is long. Where drift is only
// reported, it is never delayed: the observed generation tells drift from a change of the spec.
func (e *engine[T, W]) dueWhenBusy(r *result) time.Time {
	if !e.isBusy() || e.reportsDrift(r.object) {
		return time.Time{}
	}
	if kept, known := e.pendingStatus.Get(r.key); known {
		return kept.since.Add(e.app.StatusDelay)
	}
	return e.now().Add(e.app.StatusDelay)
}

// collectChanges adds the changes of earlier reconciles that published nothing, or keeps them for
// the one that publishes.
func (e *engine[T, W]) collectChanges(r *result) {
	kept, known := e.pendingStatus.Get(r.key)
	r.done = slices.Concat(kept.done, r.changes)
	switch {
	case r.statusDue.IsZero():
		e.pendingStatus.Forget(r.key)
	case known:
		e.pendingStatus.Put(r.key, pendingStatus{kept.since, r.done})
	default:
		e.pendingStatus.Put(r.key, pendingStatus{e.now(), r.done})
	}
}

// isBusy reports whether more objects are queued than there are workers.
func (e *engine[T, W]) isBusy() bool {
	q := e.queue.Load()
	return q != nil && (*q).Len() > e.app.Workers
}

// noteStatusWritten records when the status was written. After a step nothing is delayed.
func (e *engine[T, W]) noteStatusWritten(r *result) {
	switch {
	case r.taken != nil:
		e.lastStatusWrite.Forget(r.key)
	case e.app.StatusInterval > 0:
		e.lastStatusWrite.Put(r.key, e.now())
	}
}

// conditionsDiffer reports whether more than the messages of the conditions changed.
func conditionsDiffer(before, now lifecycle.Resource) bool {
	_, was := before.StatusFields()
	_, is := now.StatusFields()
	return len(*was) != len(*is) || slices.ContainsFunc(*is, func(c metav1.Condition) bool {
		old := apimeta.FindStatusCondition(*was, c.Type)
		return old == nil || old.Status != c.Status || old.Reason != c.Reason || old.ObservedGeneration != c.ObservedGeneration
	})
}
