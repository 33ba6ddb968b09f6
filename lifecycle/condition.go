package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types that every object has. They follow the kstatus convention:
// Ready is the summary; Reconciling and Stalled are true only when abnormal.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionPaused is present only while the object is paused.
	ConditionPaused = "Paused"
	// ConditionDrifted is present only while somebody else's changes are left as they are; its
	// message says what was changed and by whom, its transition since when.
	ConditionDrifted = "Drifted"
	// ConditionDeletionHeld is present only while a policy holds the deletion of the object: all
	// that belongs to it stays, and the other conditions speak of how it serves.
	ConditionDeletionHeld = "DeletionHeld"
	// ConditionCertificatesDue is present only while certificates are due for renewal and the pause of
	// the object keeps them from it; its message names their Secrets.
	ConditionCertificatesDue = "CertificatesDue"
	// ConditionResourcesBlocked is present only while an object that the application provides cannot be
	// as declared before somebody acts; repairs that do not need it go on.
	ConditionResourcesBlocked = "ResourcesBlocked"
	// ConditionRolledBack is present while the spec is one that the operator put back because the
	// one after it failed, until a user declares another.
	ConditionRolledBack = "RolledBack"
)

// Condition is one fact about an object, without the bookkeeping (time of
// transition, generation) that the engine adds.
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

// StatusOf returns the condition status for a boolean.
func StatusOf(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// StandardConditions returns Ready, Reconciling and Stalled for a decision.
func StandardConditions(d Decision) []Condition {
	ready := d.Outcome == OutcomeSettled
	stalled := d.Outcome == OutcomeBlocked
	fact := func(kind string, b bool) Condition {
		return Condition{Type: kind, Status: StatusOf(b), Reason: d.Reason, Message: d.Message}
	}
	return []Condition{fact(ConditionReady, ready), fact(ConditionReconciling, !ready && !stalled), fact(ConditionStalled, stalled)}
}

// Merge writes conditions into a status list. A condition that says nothing new
// keeps its transition time, and one whose type is not in facts is removed, so the
// same facts leave the list byte for byte as it was.
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
