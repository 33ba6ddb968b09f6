package engine

import (
	"context"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/governor-dev/governor/lifecycle"
)

// heldDeletion is a deletion that policies hold.
type heldDeletion struct {
	step     lifecycle.Step
	refusals []lifecycle.Refusal
}

// deletionWorld are the object and the world that a deletion was judged in.
type deletionWorld[T lifecycle.Resource, W any] struct {
	obj  T
	seen W
}

// hold decides about the deletion of an object that a policy can hold. A deletion that
// passes is prepared by its one step, and the object is released to Kubernetes' garbage
// collection.
func (e *engine[T, W]) hold(ctx context.Context, r *reconciliation[T, W]) {
	if !e.app.Holdable || !deleting(r.obj) {
		return
	}
	if controllerutil.ContainsFinalizer(r.obj, metav1.FinalizerOrphanDependents) {
		e.releaseToKubernetes(ctx, r) // nothing of it is deleted, so nothing is to be held or prepared
		return
	}
	e.observe(ctx, r)
	if !r.observed {
		return
	}
	r.decision = e.app.Planner.Next(r.obj, r.seen, e.now())
	if r.decision.Outcome == lifecycle.OutcomeProceed {
		e.judgeDeletion(ctx, r)
	}
	switch {
	case r.held != nil:
		e.ignoreDeletion(r)
	case r.decision.Outcome == lifecycle.OutcomeProceed:
		e.act(ctx, r)
		if r.taken == nil || r.taken.err != nil {
			return
		}
		if e.releaseToKubernetes(ctx, r); r.released {
			e.announce(&r.result)
		}
	case r.decision.Outcome == lifecycle.OutcomeSettled:
		e.releaseToKubernetes(ctx, r)
	}
}

// judgeDeletion asks the policies about the step. A foreground deletion cannot be held:
// Kubernetes deletes the dependents before it waits for the finalizer. In a namespace that
// is being deleted nothing can be kept: there the object waits, and nothing is provided.
func (e *engine[T, W]) judgeDeletion(ctx context.Context, r *reconciliation[T, W]) {
	if controllerutil.ContainsFinalizer(r.obj, metav1.FinalizerDeleteDependents) {
		return
	}
	step := r.decision.Step
	v := e.selecting(r.obj).Judge(e.question(ctx, r.obj, r.seen, step))
	switch {
	case len(v.Refusals) == 0:
		r.approval, r.bypass = v.Approval, e.bypassed(ctx, r.obj, v)
	case e.namespaceTerminates(ctx, r.obj.GetNamespace()):
		r.refusals, r.decision = v.Refusals, lifecycle.Held(step, v.Refusals...)
	default:
		r.held = &heldDeletion{step, v.Refusals}
		r.heldIn = &deletionWorld[T, W]{r.obj.DeepCopyObject().(T), r.seen}
	}
}

// ignoreDeletion lets the turn go on as if the object were not being deleted: a held deletion
// holds everything. The API server keeps the deletion timestamp, whatever is written.
func (e *engine[T, W]) ignoreDeletion(r *reconciliation[T, W]) {
	r.before.SetDeletionTimestamp(nil)
	r.obj.SetDeletionTimestamp(nil)
	r.decision, r.observed = lifecycle.Decision{}, false
}

// releaseToKubernetes removes the finalizer. The object is released once the API server has accepted that.
func (e *engine[T, W]) releaseToKubernetes(ctx context.Context, r *reconciliation[T, W]) {
	base := r.obj.DeepCopyObject().(T)
	controllerutil.RemoveFinalizer(r.obj, finalizer)
	if e.edit(ctx, r, base); r.cause != nil {
		return
	}
	r.released = true
	e.release(r.key)
}

// heldFact is the condition while the deletion is held.
func (r *result) heldFact() []lifecycle.Condition {
	if r.held == nil {
		return nil
	}
	meanwhile := "Until it passes the operator keeps the object running."
	if r.paused {
		meanwhile = "Nothing is deleted before it passes."
	}
	var said []string
	for _, refusal := range r.held.refusals {
		said = append(said, "by "+refusal.By()+": "+refusal.Message)
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionDeletionHeld, Status: metav1.ConditionTrue, Reason: lifecycle.ReasonHeldByPolicy,
		Message: "The deletion is held " + strings.Join(said, "; and ") + ". " + meanwhile,
	}}
}

// newlyHeld reports whether the status does not say yet what holds the deletion.
func (r *result) newlyHeld() bool {
	if r.held == nil {
		return false
	}
	_, conditions := r.before.StatusFields()
	c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionDeletionHeld)
	return c == nil || c.Message != r.heldFact()[0].Message
}
