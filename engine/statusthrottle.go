package engine

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// pendingStatus is what was done while nothing was told, and since when.
type pendingStatus struct {
	since time.Time
	done  []apply.Change
}

// later is when to tell what is new and not told now, by status and event; zero if it is
// told now. Anything but a wait is, and so is what holds it, what others changed, and that
// certificates were replaced.
func (e *engine[T, W]) later(r *result) time.Time {
	if r.same || r.decision.Outcome != lifecycle.OutcomeWait || len(r.refusals) > 0 || r.newDrift() || certificates(r.issued) != "" {
		return time.Time{}
	}
	due := e.dueRecount(r)
	if saysMore(r.before, r.object) {
		due = e.dueInHurry(r)
	}
	if !e.now().Before(due) {
		return time.Time{}
	}
	return due
}

// dueRecount is when numbers are to be told that are all that is new.
func (e *engine[T, W]) dueRecount(r *result) time.Time {
	last, known := e.lastStatusWrite.Get(r.key)
	if !known {
		return time.Time{}
	}
	return last.Add(e.app.Recount)
}

// dueInHurry is when a new wait is to be told: now, unless others wait for their turn.
// Where drift is only reported, the status says from when on a change is drift.
func (e *engine[T, W]) dueInHurry(r *result) time.Time {
	if !e.hurried() || e.reportsDrift(r.object) {
		return time.Time{}
	}
	if kept, known := e.pendingStatus.Get(r.key); known {
		return kept.since.Add(e.app.TellWithin)
	}
	return e.now().Add(e.app.TellWithin)
}

// recollect adds to the turn what was done in those that told nothing, or keeps it for
// the one that will.
func (e *engine[T, W]) recollect(r *result) {
	kept, known := e.pendingStatus.Get(r.key)
	r.done = slices.Concat(kept.done, r.changes)
	switch {
	case r.later.IsZero():
		e.pendingStatus.Forget(r.key)
	case known:
		e.pendingStatus.Put(r.key, pendingStatus{kept.since, r.done})
	default:
		e.pendingStatus.Put(r.key, pendingStatus{e.now(), r.done})
	}
}

// hurried reports whether more objects wait for their turn than can have it next.
func (e *engine[T, W]) hurried() bool {
	q := e.queue.Load()
	return q != nil && (*q).Len() > e.app.Workers
}

// noteTold remembers when the status was told. What a step has changed is told at once.
func (e *engine[T, W]) noteTold(r *result) {
	switch {
	case r.taken != nil:
		e.lastStatusWrite.Forget(r.key)
	case e.app.Recount > 0:
		e.lastStatusWrite.Put(r.key, e.now())
	}
}

// saysMore reports whether the conditions are about something else, and not only in
// other words.
func saysMore(before, now lifecycle.Resource) bool {
	_, was := before.StatusFields()
	_, is := now.StatusFields()
	return len(*was) != len(*is) || slices.ContainsFunc(*is, func(c metav1.Condition) bool {
		old := apimeta.FindStatusCondition(*was, c.Type)
		return old == nil || old.Status != c.Status || old.Reason != c.Reason || old.ObservedGeneration != c.ObservedGeneration
	})
}
