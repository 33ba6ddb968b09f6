package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/lifecycle"
)

// finalize lets the object go once it is settled.
func (e *engine[T, W]) finalize(ctx context.Context, r *reconciliation[T, W]) {
	if !deleting(r.obj) || r.Decision.Outcome != lifecycle.OutcomeSettled {
		return
	}
	e.releaseToKubernetes(ctx, r)
}

// edit writes the metadata of the object unless it was changed meanwhile.
func (e *engine[T, W]) edit(ctx context.Context, r *reconciliation[T, W], base T) {
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := e.client.Patch(ctx, r.obj, patch); client.IgnoreNotFound(err) != nil {
		r.Cause = err
		r.Decision = explain.Error(err)
		return
	}
	e.tracker.Wrote(r.Key, r.obj)
	r.Before = r.obj.DeepCopyObject().(T)
}
