package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
)

// announcement is the event of a reconcile.
type announcement struct{ kind, reason, action, note string }

// Actions of events that no step gives its name to.
const (
	decided  = "Decide"
	provided = "Provide"
	issue    = "Issue"  // certificates
	repaired = "Repair" // what someone else changed
)

// announce records one event at most: an event costs the API server as much as a small object.
func (e *engine[T, W]) announce(r *result) {
	a := r.announcement()
	if a.reason == "" || !r.statusDue.IsZero() {
		return
	}
	const longest = 1000 // the API allows little more
	if len(a.note) > longest {
		a.note = a.note[:longest] + "…"
	}
	e.recorder.Eventf(r.object, nil, a.kind, a.reason, a.action, "%s", a.note)
}

// announcement says what was done and what came of it, or nothing if neither is new.
func (r *result) announcement() announcement {
	a := announcement{kind: corev1.EventTypeNormal, action: r.action()}
	switch {
	case r.taken != nil && r.taken.err == nil:
		step := r.taken.step
		a.reason, a.action, a.note = step.Reason, step.Name, step.Message+r.because(step)+passed(r.bypass)
	case r.news():
		a.reason, a.note = r.decision.Reason, r.decision.Message
		if r.decision.Outcome == lifecycle.OutcomeBlocked || r.cause != nil {
			a.kind = corev1.EventTypeWarning
		}
	case r.newDrift():
		a.kind, a.reason, a.note = corev1.EventTypeWarning, lifecycle.ConditionDrifted, enumerated(r.drifts)
	case certificates(r.issued) != "":
		a.reason, a.action = "CertificatesIssued", issue
	case a.action == repaired:
		a.reason = "Repaired"
	case a.action == provided:
		a.reason = "Provided"
	}
	if r.newlyHeld() {
		a.reason, a.note = cmp.Or(a.reason, lifecycle.ConditionDeletionHeld), r.heldFact()[0].Message+" "+a.note
	}
	a.note = strings.TrimSpace(sentence(r.done) + " " + certificates(r.issued) + a.note)
	return a
}

// because is what set the step off, in short.
func (r *result) because(step lifecycle.Step) string {
	switch {
	case step.Cause == "":
		return ""
	case step.Cause == lifecycle.CauseSpecChange && r.author != "":
		return fmt.Sprintf(" [%s by %s, generation %d]", step.Cause, r.author, r.object.GetGeneration())
	}
	return fmt.Sprintf(" [%s]", step.Cause)
}

// renewed reports whether certificates were issued because they were due, and not because they
// were damaged.
func renewed(issued []certificate.Issued) bool {
	return slices.ContainsFunc(issued, func(i certificate.Issued) bool {
		return slices.Contains([]string{certificate.ReasonNearEnd, certificate.ReasonSettled, certificate.ReasonExpired, certificate.ReasonRevoked}, i.Reason)
	})
}

// certificates returns a sentence about replaced certificates. The change of the Secret
// reports a new one.
func certificates(issued []certificate.Issued) string {
	var s strings.Builder
	for _, i := range issued {
		if i.Reason != certificate.ReasonMissing {
			s.WriteString(i.String() + ". ")
		}
	}
	return s.String()
}

// byOthers are changes that put back what others have changed.
func byOthers(c apply.Change) bool { return !c.Redeclared }

func (r *result) action() string {
	switch {
	case len(r.done) == 0:
		return decided
	case r.drift && !renewed(r.issued) && slices.ContainsFunc(r.done, byOthers):
		return repaired
	}
	return provided
}

// sentence names the first few changes, e.g. "Created Service m, Deployment m.
// Pruned ConfigMap m.", and how many more there are.
func sentence(changes []apply.Change) string {
	const enough = 6
	var s strings.Builder
	for i, c := range changes[:min(len(changes), enough)] {
		switch what := c.String(); {
		case i == 0:
			s.WriteString(what)
		case c.Verb == changes[i-1].Verb:
			s.WriteString("," + strings.TrimPrefix(what, string(c.Verb)))
		default:
			s.WriteString(". " + what)
		}
	}
	if more := len(changes) - enough; more > 0 {
		fmt.Fprintf(&s, " and %d more", more)
	}
	if s.Len() > 0 {
		s.WriteString(".")
	}
	return s.String()
}
