package publish

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/engine/internal/rollback"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Describe writes the conditions and the observed generation into the object. own are the
// application's conditions, nil if nothing new was seen.
func (r *Result) Describe(own []lifecycle.Condition, now time.Time) {
	observedGeneration, conditions := r.Object.StatusFields()
	facts := lifecycle.StandardConditions(r.Decision, own)
	if r.Paused {
		facts = pausedFacts(r.Decision.Message, *conditions, r.Sight)
	}
	// A paused object that was seen is judged by its present spec: nothing else will be
	// done for it, and clients that wait for the generation do not wait for the end of the pause.
	if r.Paused && r.Sight != nil || !r.Paused && (r.Decided || r.Decision.Outcome == lifecycle.OutcomeBlocked) {
		*observedGeneration = r.Object.GetGeneration()
	}
	if own == nil {
		own = unchanged(*conditions, facts)
	}
	facts = append(append(facts, own...), rollback.Condition(r.Object)...)
	facts = slices.Concat(facts, driftFact(r.Drifts), overdueFact(r.Overdue), r.heldFact(), blockedFact(r.Blocked), r.stuckFact())
	r.ChangeHeld = slices.ContainsFunc(facts, func(c lifecycle.Condition) bool { return c.Type == lifecycle.ConditionChangeHeld })
	*conditions = lifecycle.Merge(*conditions, facts, *observedGeneration, metav1.NewTime(now))
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

// seenFacts are Ready, Reconciling and Stalled of a paused object: what is seen, and that
// nothing is done about it.
func seenFacts(sight lifecycle.Decision) []lifecycle.Condition {
	if sight.Outcome != lifecycle.OutcomeSettled {
		sight.Message += " Nothing is done about it: it is paused."
	}
	facts := lifecycle.StandardConditions(sight, nil)
	for i, f := range facts {
		if f.Type == lifecycle.ConditionReconciling {
			facts[i].Status, facts[i].Reason, facts[i].Message = metav1.ConditionFalse, lifecycle.ConditionPaused, "It is paused."
		}
	}
	return facts
}

// driftFact is the condition while something is left as others made it.
func driftFact(drifts []apply.Drift) []lifecycle.Condition {
	if len(drifts) == 0 {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionDrifted, Status: metav1.ConditionTrue, Reason: changedByOthers, Message: enumerated(drifts),
	}}
}

const changedByOthers = "ChangedByOthers"

// enumerated names the first few, and how many more there are.
func enumerated(drifts []apply.Drift) string {
	const enough = 6
	var all []string
	for _, d := range drifts[:min(len(drifts), enough)] {
		all = append(all, d.String())
	}
	said := "Others changed what the operator provides, and it is left as it is: " + strings.Join(all, "; ")
	if more := len(drifts) - enough; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said + "."
}

// overdueFact is the condition while a pause keeps certificates from being renewed.
func overdueFact(secrets []string) []lifecycle.Condition {
	if len(secrets) == 0 {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionCertificatesDue, Status: metav1.ConditionTrue, Reason: lifecycle.ConditionPaused, Message: fmt.Sprintf(
			"Certificates are missing or due for renewal in the Secrets %s. The object is paused; end the pause to renew them.",
			strings.Join(secrets, ", ")),
	}}
}

// blockedFact is the condition while repairs go on despite such objects.
func blockedFact(b *hold.Blocked) []lifecycle.Condition {
	if b == nil {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionResourcesBlocked, Status: metav1.ConditionTrue, Reason: b.Decision.Reason, Message: b.Decision.Message,
	}}
}

// heldFact is the condition while the deletion is held.
func (r *Result) heldFact() []lifecycle.Condition {
	if r.Held == nil {
		return nil
	}
	meanwhile := "Until it passes the operator keeps the object running."
	if r.Paused {
		meanwhile = "Nothing is deleted before it passes."
	}
	var said []string
	for _, refusal := range r.Held.Refusals {
		said = append(said, "by "+refusal.By()+": "+refusal.Message)
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionDeletionHeld, Status: metav1.ConditionTrue, Reason: lifecycle.ReasonHeldByPolicy,
		Message: "The deletion is held " + strings.Join(said, "; and ") + ". " + meanwhile,
	}}
}

// stuckFact is the condition while a step is stuck. An object that cannot be provided has the same
// one, and comes first.
func (r *Result) stuckFact() []lifecycle.Condition {
	if !r.Stuck.IsSet() || r.Blocked != nil {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionResourcesBlocked, Status: metav1.ConditionTrue, Reason: r.Stuck.Reason, Message: r.Stuck.Message,
	}}
}
