package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/governor-dev/governor/lifecycle"
)

// finalizer keeps an object until the steps of its deletion are done.
const finalizer = lifecycle.Finalizer

func hasFinalizer(obj client.Object) bool { return controllerutil.ContainsFinalizer(obj, finalizer) }

// claim gives an object the finalizer if its deletion has steps, or if a policy
// can hold its deletion, and takes a finalizer away that no longer serves either. Without
// it nothing keeps an object or its namespace from going, also while the operator is away.
func (e *engine[T, W]) claim(ctx context.Context, r *reconciliation[T, W]) {
	if deleting(r.obj) || r.Held != nil || hasFinalizer(r.obj) == e.needsFinalizer(r.obj) {
		return
	}
	base := r.Before.DeepCopyObject().(T)
	if !controllerutil.RemoveFinalizer(r.obj, finalizer) {
		controllerutil.AddFinalizer(r.obj, finalizer)
	}
	e.edit(ctx, r, base)
}

func (e *engine[T, W]) needsFinalizer(obj T) bool {
	switch {
	case e.app.Finalize:
		return hasFinalizer(obj) || !e.judge.IsPaused(obj)
	case e.app.Holdable:
		return e.policies.Selecting(obj).HoldsDeletions()
	}
	return false
}
