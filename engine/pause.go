package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// pause ends the reconcile of a paused object: it was observed, and nothing is written
// but its status. Deletion ends the pause, or the object would hold back its
// namespace for ever.
func (e *engine[T, W]) pause(ctx context.Context, r *reconciliation[T, W]) {
	if r.paused = e.isPaused(r.obj) && !deleting(r.obj); r.paused {
		e.observeOnly(ctx, r)
		r.decision.Reason, r.decision.Message = lifecycle.ConditionPaused, e.whyPaused(r.obj)
	}
}

// isPaused reports whether the object itself or a policy asks to keep the hands off.
func (e *engine[T, W]) isPaused(obj T) bool {
	return e.asksForPause(obj) || e.policy(obj).Paused()
}

func (e *engine[T, W]) asksForPause(obj T) bool {
	own := e.app.Abilities.IsPaused
	return own != nil && own(obj) || obj.GetAnnotations()[lifecycle.AnnotationPaused] == "true"
}

// whyPaused says who pauses the object, and what resumes it.
func (e *engine[T, W]) whyPaused(obj T) string {
	by := e.policy(obj).PausedBy
	var ways []string
	if len(by) > 0 {
		ways = append(ways, fmt.Sprintf("spec.paused of %s", policy.Said(by)))
	}
	if e.asksForPause(obj) {
		ways = append(ways, "spec.paused or the annotation "+lifecycle.AnnotationPaused)
	}
	return "The operator observes only. Remove " + strings.Join(ways, ", and ") + " to resume."
}

// observeOnly reports the state of a paused object and what others changed.
func (e *engine[T, W]) observeOnly(ctx context.Context, r *reconciliation[T, W]) {
	sight := e.app.Planner.Next(r.obj, r.seen, e.now())
	r.sight = &sight
	wanted, err := e.app.Planner.Resources(r.obj, r.seen)
	if err == nil {
		r.drifts, err = e.applier.FindDrift(ctx, r.obj, uncertified(wanted), e.isProvided(ctx, r))
	}
	if err == nil {
		err = e.overdue(ctx, r, wanted)
	}
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot see all drift of a paused object", "cause", err.Error())
	}
}

// overdue names the Secrets whose certificates a pause keeps from being renewed. Nothing is
// written; the object reconciles again when the next certificate is due.
func (e *engine[T, W]) overdue(ctx context.Context, r *reconciliation[T, W], wanted []lifecycle.Object) error {
	filled, err := e.issuer.Fill(ctx, r.obj, wanted)
	if err != nil {
		return err
	}
	r.due = filled.Due
	for _, i := range filled.Issued {
		r.overdue = append(r.overdue, i.Secret)
	}
	slices.Sort(r.overdue)
	r.overdue = slices.Compact(r.overdue)
	return nil
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
