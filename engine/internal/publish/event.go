package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Event is the event of a reconcile.
type Event struct{ Kind, Reason, Action, Note string }

// Actions of events that no step gives its name to.
const (
	decided  = "Decide"
	applied  = "Apply"
	issue    = "Issue"  // certificates
	repaired = "Repair" // what someone else changed
)

// Event says what was done and what came of it, or nothing if neither is new.
func (r *Result) Event() Event {
	a := Event{Kind: corev1.EventTypeNormal, Action: r.action()}
	switch {
	case r.Taken != nil && r.Taken.Err == nil && !r.rests():
		step := r.Taken.Step
		a.Reason, a.Action, a.Note = step.Reason, step.Name, step.Message+r.because(step)+passed(r.Bypass)
	case r.news():
		a.Reason, a.Note = r.Decision.Reason, r.Decision.Message
		if r.Decision.Outcome == lifecycle.OutcomeBlocked || r.Cause != nil {
			a.Kind = corev1.EventTypeWarning
		}
	case r.newDrift():
		a.Kind, a.Reason, a.Note = corev1.EventTypeWarning, lifecycle.ConditionDrifted, enumerated(r.Drifts)
	case certificates(r.Issued) != "":
		a.Reason, a.Action = "CertificatesIssued", issue
	case a.Action == repaired:
		a.Reason = "Repaired"
	case a.Action == applied:
		a.Reason = "Applied"
	}
	if r.newlyStuck() && !r.rests() {
		a.Kind, a.Reason, a.Note = corev1.EventTypeWarning, r.Stuck.Reason, r.Stuck.Message+" "+a.Note
	}
	if r.newlyHeld() {
		a.Reason, a.Note = cmp.Or(a.Reason, lifecycle.ConditionDeletionHeld), r.heldFact()[0].Message+" "+a.Note
	}
	a.Note = strings.TrimSpace(sentence(r.Done) + " " + certificates(r.Issued) + a.Note)
	return a
}

// because is what set the step off, in short.
func (r *Result) because(step lifecycle.Step) string {
	switch {
	case step.Cause == "":
		return ""
	case step.Cause == lifecycle.CauseSpecChange && r.Author != "":
		return fmt.Sprintf(" [%s by %s, generation %d]", step.Cause, r.Author, r.Object.GetGeneration())
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

func (r *Result) action() string {
	switch {
	case len(r.Done) == 0:
		return decided
	case r.Drift && !renewed(r.Issued) && slices.ContainsFunc(r.Done, byOthers):
		return repaired
	}
	return applied
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

// passed says in an event what policies were passed, and by whose word.
func passed(b *history.Bypass) string {
	if b == nil {
		return ""
	}
	by := ""
	if b.By != "" {
		by = ", set by " + b.By
	}
	return fmt.Sprintf(" It passed %s by the annotation %s (%q%s).", policy.Said(b.Policies), lifecycle.AnnotationBypass, b.Reason, by)
}
