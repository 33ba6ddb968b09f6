package lifecycle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of every object. They follow the kstatus convention: Ready is the
// summary; Reconciling and Stalled are true only while they apply.
const (
	// ConditionReady is True while the application serves and nothing has to change but what a policy holds.
	ConditionReady = "Ready"
	// ConditionReconciling is True only while the operator changes something, or waits for a change to take effect.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True only while a person has to act. Its reason and message say what is wrong, and how
	// to correct it.
	ConditionStalled = "Stalled"
	// ConditionAvailable is a condition of applications: the application serves its clients.
	ConditionAvailable = "Available"
	// ConditionDegraded is a condition of applications: not everything that the spec asks for
	// works.
	ConditionDegraded = "Degraded"
	// ConditionChangeHeld is present only while a policy holds a change of the spec and the
	// application serves as before. Ready is true then: it speaks of the service.
	ConditionChangeHeld = "ChangeHeld"
	// ConditionPaused is present only while the object is paused.
	ConditionPaused = "Paused"
	// ConditionDrifted is present only while Governor leaves changes of others in place. Its
	// message says what changed and by which field manager.
	ConditionDrifted = "Drifted"
	// ConditionDeletionHeld is present only while a policy holds the deletion of the object.
	// Everything that belongs to it stays, and the other conditions describe its service.
	ConditionDeletionHeld = "DeletionHeld"
	// ConditionCertificatesDue is present only while the object is paused and certificates are
	// due for renewal. Its message names their Secrets.
	ConditionCertificatesDue = "CertificatesDue"
	// ConditionResourcesBlocked is present only while the API server refuses an object of the
	// application until a person acts, or a step is stuck. Repairs that do not need the object or
	// the step go on.
	ConditionResourcesBlocked = "ResourcesBlocked"
	// ConditionRolledBack is present while the spec is one that the operator restored because
	// the one after it failed, until a user changes the spec.
	ConditionRolledBack = "RolledBack"
)

// Condition is one fact about an object. The engine adds the transition time and the
// generation.
type Condition struct {
	// Type is the condition's name, e.g. Available.
	Type string
	// Status is True, False or Unknown.
	Status metav1.ConditionStatus
	// Reason is a CamelCase fact.
	Reason string
	// Message is a sentence; it must be the same for the same world.
	Message string
}

// StatusOf returns the condition status of a boolean.
func StatusOf(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Service is what an application does for its clients at present.
type Service struct {
	// Available reports that it serves, and AvailableReason is the CamelCase fact that it does.
	Available       bool
	AvailableReason string
	// Complete reports that all of the spec works, and CompleteReason is that fact.
	Complete       bool
	CompleteReason string
	// Message has the figures, e.g. "2 of 3 members serve."
	Message string
}

// Conditions returns Available and Degraded. The reason for what does not work is that of the decision.
func (s Service) Conditions(d Decision) []Condition {
	fact := func(kind string, is, works bool, reason string) Condition {
		if !works {
			reason = d.Reason
		}
		return Condition{Type: kind, Status: StatusOf(is), Reason: reason, Message: s.Message}
	}
	return []Condition{
		fact(ConditionAvailable, s.Available, s.Available, s.AvailableReason),
		fact(ConditionDegraded, !s.Complete, s.Complete, s.CompleteReason),
	}
}

// StandardConditions returns Ready, Reconciling and Stalled of a decision. own are the
// application's conditions. While a policy holds a step and the application is Available and
// not Degraded, Ready is true, Reconciling is false, and ChangeHeld names the step: clients
// that wait with kstatus, such as Flux and helm --wait, do not wait for the policy.
func StandardConditions(d Decision, own []Condition) []Condition {
	fact := func(kind string, b bool) Condition {
		return Condition{Type: kind, Status: StatusOf(b), Reason: d.Reason, Message: d.Message}
	}
	if d.servesWhileHeld(own) {
		return []Condition{fact(ConditionReady, true), fact(ConditionReconciling, false), fact(ConditionStalled, false), fact(ConditionChangeHeld, true)}
	}
	ready := d.Outcome == OutcomeSettled
	stalled := d.Outcome == OutcomeBlocked
	return []Condition{fact(ConditionReady, ready), fact(ConditionReconciling, !ready && !stalled), fact(ConditionStalled, stalled)}
}

// servesWhileHeld reports whether a policy holds the step of the decision, and the application
// serves in full meanwhile. An application without these conditions does not say that it serves.
func (d Decision) servesWhileHeld(own []Condition) bool {
	is := func(kind string) bool {
		return slices.ContainsFunc(own, func(c Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue })
	}
	return d.Outcome == OutcomeWait && d.Reason == ReasonHeldByPolicy && is(ConditionAvailable) && !is(ConditionDegraded)
}

// Merge returns the status list of the conditions. A condition whose status is unchanged
// keeps its transition time, and one whose type is not in facts is removed. So the same
// facts give the same list, byte for byte.
func Merge(list []metav1.Condition, facts []Condition, generation int64, now metav1.Time) []metav1.Condition {
	merged := make([]metav1.Condition, 0, len(facts))
	for _, f := range facts {
		merged = append(merged, stamped(list, f, generation, now))
	}
	return merged
}

func stamped(list []metav1.Condition, f Condition, generation int64, now metav1.Time) metav1.Condition {
	c := metav1.Condition{
		Type: f.Type, Status: f.Status, Reason: f.Reason, Message: f.Message,
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	for _, old := range list {
		if old.Type == f.Type && old.Status == f.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c
}
