package publish

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Throttle delays the status and event of waits. It is safe for concurrent use.
type Throttle struct {
	// Interval and Delay are StatusInterval and StatusDelay of an application.
	Interval, Delay time.Duration
	// IsBusy reports whether more objects are queued than there are workers.
	IsBusy func() bool
	// ReportsDrift reports whether a policy leaves what others change of the object.
	ReportsDrift func(obj lifecycle.Resource) bool
	Now          func() time.Time

	written memory.Map[time.Time] // when the status of each object was last written
	pending memory.Map[pendingStatus]
}

// pendingStatus is what was done since the status was last published.
type pendingStatus struct {
	since time.Time
	done  []apply.Change
}

// due returns when to publish a delayed status and event; zero if it is published now. Only
// waits are delayed, and only if nothing holds them, others changed nothing, and no certificate
// was replaced.
func (t *Throttle) due(r *Result) time.Time {
	if r.Same || r.Decision.Outcome != lifecycle.OutcomeWait || len(r.Refusals) > 0 || r.newDrift() || certificates(r.Issued) != "" {
		return time.Time{}
	}
	due := t.dueByInterval(r)
	if conditionsDiffer(r.Before, r.Object) {
		due = t.dueWhenBusy(r)
	}
	if !t.Now().Before(due) {
		return time.Time{}
	}
	return due
}

// dueByInterval returns when to publish a status in which only numbers are new.
func (t *Throttle) dueByInterval(r *Result) time.Time {
	last, known := t.written.Get(r.Key)
	if !known {
		return time.Time{}
	}
	return last.Add(t.Interval)
}

// dueWhenBusy returns when to publish a new wait: now, unless the queue is long. Where drift is only
// reported, it is never delayed: the observed generation tells drift from a change of the spec.
func (t *Throttle) dueWhenBusy(r *Result) time.Time {
	if !t.IsBusy() || t.ReportsDrift(r.Object) {
		return time.Time{}
	}
	if kept, known := t.pending.Get(r.Key); known {
		return kept.since.Add(t.Delay)
	}
	return t.Now().Add(t.Delay)
}

// collect adds the changes of earlier reconciles that published nothing, or keeps them for
// the one that publishes.
func (t *Throttle) collect(r *Result) {
	kept, known := t.pending.Get(r.Key)
	r.Done = slices.Concat(kept.done, r.Changes)
	switch {
	case r.StatusDue.IsZero():
		t.pending.Forget(r.Key)
	case known:
		t.pending.Put(r.Key, pendingStatus{kept.since, r.Done})
	default:
		t.pending.Put(r.Key, pendingStatus{t.Now(), r.Done})
	}
}

// noteWritten records when the status was written. After a step nothing is delayed.
func (t *Throttle) noteWritten(r *Result) {
	switch {
	case r.Taken != nil:
		t.written.Forget(r.Key)
	case t.Interval > 0:
		t.written.Put(r.Key, t.Now())
	}
}

// forget drops what is known of an object that is gone.
func (t *Throttle) forget(key types.NamespacedName) {
	t.written.Forget(key)
	t.pending.Forget(key)
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
