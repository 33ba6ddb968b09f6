package publish

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// news reports whether the decision says something else than the object's status, and
// the status will say it.
func (r *Result) news() bool {
	if r.rests() && !r.newlyStuck() {
		return false // it is a further attempt, or other repairs went on meanwhile
	}
	d, said := r.Decision, r.Said()
	return r.StatusDue.IsZero() && d.IsSet() && (said.Reason != d.Reason || said.Status != r.readiness())
}

// readiness is the status of Ready that the decision leads to.
func (r *Result) readiness() metav1.ConditionStatus {
	return lifecycle.StatusOf(r.ChangeHeld || r.Decision.Outcome == lifecycle.OutcomeSettled)
}

// Said is what the object's status says so far; the zero value if it says nothing.
func (r *Result) Said() metav1.Condition {
	_, conditions := r.Before.StatusFields()
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// rests reports whether the decision is that a stuck step rests, and nothing goes on.
func (r *Result) rests() bool {
	return r.Stuck.IsSet() && r.Decision.Reason == r.Stuck.Reason && r.Decision.Message == r.Stuck.Message
}

// newlyStuck reports whether the status does not say yet that the step is stuck. The message may
// have numbers, such as those of a quota, so that it tells nothing new.
func (r *Result) newlyStuck() bool {
	if !r.Stuck.IsSet() {
		return false
	}
	_, conditions := r.Before.StatusFields()
	c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionResourcesBlocked)
	return c == nil || c.Reason != r.Stuck.Reason
}

// newlyHeld reports whether the status does not say yet what holds the deletion.
func (r *Result) newlyHeld() bool {
	if r.Held == nil {
		return false
	}
	_, conditions := r.Before.StatusFields()
	c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionDeletionHeld)
	return c == nil || c.Message != r.heldFact()[0].Message
}

// newDrift reports whether the status does not say yet what has drifted.
func (r *Result) newDrift() bool {
	if len(r.Drifts) == 0 {
		return false
	}
	_, conditions := r.Before.StatusFields()
	c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionDrifted)
	return c == nil || c.Message != enumerated(r.Drifts)
}
