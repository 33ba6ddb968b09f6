package engine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/engine/internal/rollback"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

// cacheLagRequeue is the delay before the engine checks again whether the cache has caught up
// with its own writes. The event with the write may arrive during a reconcile that came too early.
const cacheLagRequeue = 100 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (e *engine[T, W]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := req.NamespacedName
	caughtUp, err := e.tracker.CaughtUp(ctx, key)
	if err != nil || !caughtUp {
		return reconcile.Result{RequeueAfter: cacheLagRequeue}, err
	}
	obj, err := e.read(ctx, key)
	if err != nil {
		if apierrors.IsNotFound(err) {
			e.policies.RevokeApprovals(ctx, key)
		}
		e.forget(key)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	e.forgetReplaced(key, obj)
	e.causes.Meet(key, unfinished(obj))
	r := newReconciliation[T, W](obj, e.specManagers.Of(key), e.now())
	if len(rollback.Condition(obj)) > 0 {
		r.Author = rollback.Manager // managed fields do not record a removal
	}
	if nothingLeft(obj) {
		e.release(key)
		e.operator.policies.Note(e.holder(key), nil) // it counts until it is deleted
		return reconcile.Result{}, nil
	}
	e.runStages(readyourwrites.WithOwner(ctx, key), r)
	if r.LostLease {
		return reconcile.Result{RequeueAfter: cacheLagRequeue}, nil // the process is about to stop
	}
	return e.publish(ctx, r)
}

// nothingLeft reports whether nothing is left to do for an object that is being deleted:
// Kubernetes clears up what it owns.
func nothingLeft(obj lifecycle.Object) bool {
	return deleting(obj) && !hasFinalizer(obj)
}

func deleting(obj lifecycle.Object) bool { return obj.GetDeletionTimestamp() != nil }

// runStages runs everything before the publication. A stage either leaves a decision, which ends
// the reconcile, or passes on to the next.
func (e *engine[T, W]) runStages(ctx context.Context, r *reconciliation[T, W]) {
	defer e.recoverPanic(ctx, r)
	stages := []func(context.Context, *reconciliation[T, W]){
		e.refer, e.hold, e.claim, e.observe, e.pause, e.provide, e.decide, e.gate, e.act, e.finalize,
	}
	for _, stage := range stages {
		if r.LostLease = !e.operator.mayAct(); r.LostLease {
			return
		}
		stage(ctx, r)
		if r.IsDecided() {
			return
		}
	}
}

func (e *engine[T, W]) now() time.Time { return e.operator.options.Now() }

// Wake reconciles the object now.
func (e *engine[T, W]) Wake(key types.NamespacedName) {
	e.queue.Add(key)
}

func (e *engine[T, W]) holder(key types.NamespacedName) string {
	return e.app.Name + " " + key.String()
}

// unfinished reports whether the object's status says that something is under way or waits for a person.
func unfinished(obj lifecycle.Resource) bool {
	_, conditions := obj.StatusFields()
	return apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionReconciling) || apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionChangeHeld) ||
		apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionStalled)
}
