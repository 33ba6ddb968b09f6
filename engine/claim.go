package engine

import (
	"context"
	"fmt"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
)

// finalizer keeps an object until its farewell steps are done.
const finalizer = "governor.dev/farewell"

func hasFinalizer(obj client.Object) bool { return controllerutil.ContainsFinalizer(obj, finalizer) }

// claim gives an object the finalizer if its deletion has farewell steps, or if a policy
// can hold its deletion, and takes a finalizer away that no longer serves either. Without
// it nothing keeps an object or its namespace from going, also while the operator is away.
func (e *engine[T, W]) claim(ctx context.Context, r *result[T, W]) {
	if deleting(r.obj) || r.held != nil || hasFinalizer(r.obj) == e.needsFinalizer(r.obj) {
		return
	}
	base := r.before.DeepCopyObject().(T)
	if !controllerutil.RemoveFinalizer(r.obj, finalizer) {
		controllerutil.AddFinalizer(r.obj, finalizer)
	}
	e.edit(ctx, r, base)
}

func (e *engine[T, W]) needsFinalizer(obj T) bool {
	switch {
	case e.app.Finalize:
		return hasFinalizer(obj) || !e.isPaused(obj)
	case e.app.Holdable:
		return e.selecting(obj).HoldsDeletions()
	}
	return false
}

// finalize lets the object go once it is settled.
func (e *engine[T, W]) finalize(ctx context.Context, r *result[T, W]) {
	if !deleting(r.obj) || r.decision.Outcome != lifecycle.OutcomeSettled {
		return
	}
	e.letGo(ctx, r)
}

// edit writes the object's metadata, if nobody else did meanwhile.
func (e *engine[T, W]) edit(ctx context.Context, r *result[T, W], base T) {
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := e.client.Patch(ctx, r.obj, patch); client.IgnoreNotFound(err) != nil {
		r.cause = err
		r.decision = explain(err)
		return
	}
	e.tracker.Wrote(r.key, r.obj)
	r.before = r.obj.DeepCopyObject().(T)
}

// recoverPanic turns a panic in an application's code into a decision about the one
// object that met it. The others never notice.
func (e *engine[T, W]) recoverPanic(ctx context.Context, r *result[T, W]) {
	thrown := recover()
	if thrown == nil {
		return
	}
	panics.WithLabelValues(e.app.Name).Inc()
	logf.FromContext(ctx).Error(fmt.Errorf("%v", thrown), "panic", "stack", string(debug.Stack()))
	r.panicked = true
	e.operator.budget.release(e.holder(r.key))
	r.cause = fmt.Errorf("panic: %v", thrown)
	r.decision = bug(thrown)
}

func bug(thrown any) lifecycle.Decision {
	return lifecycle.Block("OperatorBug", fmt.Sprintf(
		"The operator's own rules failed on this object (%v). Other objects are not affected. "+
			"Please report it with the operator's log; changing the spec may avoid it.", thrown))
}
