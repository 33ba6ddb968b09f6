package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
)

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
	if !r.Observed {
		return
	}
	r.Decision = e.app.Planner.Next(r.obj, r.seen, e.now())
	if r.Decision.Outcome == lifecycle.OutcomeProceed {
		e.judgeDeletion(ctx, r)
	}
	switch {
	case r.Held != nil:
		r.ignoreDeletion()
	case r.Decision.Outcome == lifecycle.OutcomeProceed:
		e.act(ctx, r)
		if r.Taken == nil || r.Taken.Err != nil {
			return
		}
		if e.releaseToKubernetes(ctx, r); r.Released {
			e.publisher.Announce(&r.Result)
		}
	case r.Decision.Outcome == lifecycle.OutcomeSettled:
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
	step := r.Decision.Step
	v := e.policies.Selecting(r.obj).Judge(e.judge.Question(ctx, r.obj, r.seen, step))
	switch {
	case len(v.Refusals) == 0:
		r.Approval, r.Bypass = v.Approval, e.policies.Bypassed(ctx, r.obj, v)
	case e.policies.NamespaceTerminates(ctx, r.obj.GetNamespace()):
		r.Refusals, r.Decision = v.Refusals, lifecycle.Held(step, v.Refusals...)
	default:
		r.Held = &publish.HeldDeletion{Step: step, Refusals: v.Refusals}
		r.heldIn = &deletionWorld[T, W]{r.obj.DeepCopyObject().(T), r.seen}
	}
}

// ignoreDeletion lets the turn go on as if the object were not being deleted: a held deletion
// holds everything. The API server keeps the deletion timestamp, whatever is written.
func (r *reconciliation[T, W]) ignoreDeletion() {
	r.Before.SetDeletionTimestamp(nil)
	r.obj.SetDeletionTimestamp(nil)
	r.Decision, r.Observed = lifecycle.Decision{}, false
}

// releaseToKubernetes removes the finalizer. The object is released once the API server has accepted that.
func (e *engine[T, W]) releaseToKubernetes(ctx context.Context, r *reconciliation[T, W]) {
	base := r.obj.DeepCopyObject().(T)
	controllerutil.RemoveFinalizer(r.obj, finalizer)
	if e.edit(ctx, r, base); r.Cause != nil {
		return
	}
	r.Released = true
	e.release(r.Key)
}
