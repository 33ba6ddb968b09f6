package engine

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// cacheLagRequeue is the delay before the engine checks again whether the cache has caught up
// with its own writes. The event with the write may arrive during a reconcile that came too early.
const cacheLagRequeue = 100 * time.Millisecond

// engine reconciles the objects of one application.
type engine[T lifecycle.Resource, W any] struct {
	app      App[T, W]
	operator *Operator
	client   client.Client
	driver   lifecycle.Driver[T, W]
	applier  *apply.Applier
	issuer   *certificate.Issuer
	tracker  *readyourwrites.Tracker
	recorder recorder.EventRecorder
	history  *historyStore
	backoff  workqueue.TypedRateLimiter[types.NamespacedName]
	progress *progress
	objectState[W]
	specManagers *caching.SpecManagers
	references   *references
	gvk          schema.GroupVersionKind

	revisions *revision.Store
	queue     atomic.Pointer[queue]
}

func newEngine[T lifecycle.Resource, W any](
	op *Operator, app App[T, W], c client.Client, t *readyourwrites.Tracker, names *caching.SpecManagers,
) (*engine[T, W], error) {
	gvk, err := c.GroupVersionKindFor(app.newObject())
	if err != nil {
		return nil, err
	}
	live := op.mgr.GetAPIReader()
	schemas, err := discovery.NewDiscoveryClientForConfigAndClient(op.mgr.GetConfig(), op.mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	applier := apply.New(app.Name, c, live, t, app.Owns, schemas.OpenAPIV3WithContext(context.Background()))
	return &engine[T, W]{
		app: app, operator: op, client: c, tracker: t, specManagers: names, references: newReferences(), gvk: gvk,
		driver:   app.Driver(t.Client(app.Name, caching.IndexedBy(c, app.Watches)), live),
		applier:  applier,
		issuer:   certificate.New(applier, op.options.Now),
		recorder: op.mgr.GetEventRecorder(op.options.Name),
		history:  &historyStore{app: app.Name, client: c, live: live, version: op.options.Version},
		backoff:  workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		progress: newProgress(app.Name, op.options.Now),

		revisions: revision.NewStore(app.Name, gvk, op.options.Namespaces, c, live),
	}, nil
}

// Reconcile implements reconcile.Reconciler.
func (e *engine[T, W]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := req.NamespacedName
	caughtUp, err := e.tracker.CaughtUp(ctx, key)
	if err != nil || !caughtUp {
		return reconcile.Result{RequeueAfter: cacheLagRequeue}, err
	}
	obj := e.app.newObject()
	if err := e.client.Get(ctx, key, obj); err != nil {
		if apierrors.IsNotFound(err) {
			e.revoke(ctx, key)
		}
		e.forget(key)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	e.forgetReplaced(key, obj)
	e.causes.Meet(key, unfinished(obj))
	r := newReconciliation[T, W](obj, e.specManagers.Of(key), e.now())
	if len(rolledBack(obj)) > 0 {
		r.author = RollbackManager // managed fields do not record a removal
	}
	if e.nothingLeft(obj) {
		e.release(key)
		e.operator.policies.Note(e.holder(key), nil) // it counts until it is deleted
		return reconcile.Result{}, nil
	}
	e.runStages(readyourwrites.WithOwner(ctx, key), r)
	if r.lostLease {
		return reconcile.Result{RequeueAfter: cacheLagRequeue}, nil // the process is about to stop
	}
	return e.publish(ctx, r)
}

// nothingLeft reports whether nothing is left to do for an object that is being deleted:
// Kubernetes clears up what it owns.
func (e *engine[T, W]) nothingLeft(obj T) bool {
	return deleting(obj) && !hasFinalizer(obj)
}

func deleting(obj lifecycle.Object) bool { return obj.GetDeletionTimestamp() != nil }

// runStages runs everything before the publication. A stage either leaves a decision, which ends
// the reconcile, or passes on to the next.
func (e *engine[T, W]) runStages(ctx context.Context, r *reconciliation[T, W]) {
	defer e.recoverPanic(ctx, r)
	stages := []func(context.Context, *reconciliation[T, W]){
		e.refer, e.hold, e.claim, e.observe, e.pause, e.provide, e.decide, e.judge, e.act, e.finalize,
	}
	for _, stage := range stages {
		if r.lostLease = !e.operator.mayAct(); r.lostLease {
			return
		}
		stage(ctx, r)
		if r.isDecided() {
			return
		}
	}
}

func (e *engine[T, W]) now() time.Time { return e.operator.options.Now() }

// Wake reconciles the object now.
func (e *engine[T, W]) Wake(key types.NamespacedName) {
	if q := e.queue.Load(); q != nil {
		(*q).Add(reconcile.Request{NamespacedName: key})
	}
}

func (e *engine[T, W]) holder(key types.NamespacedName) string {
	return e.app.Name + " " + key.String()
}

// release gives back what a leaving object held.
func (e *engine[T, W]) release(key types.NamespacedName) {
	e.operator.budget.Release(e.holder(key))
	e.operator.policies.Drop(e.holder(key))
	e.progress.forget(key)
	e.objectState.release(key)
}

// forget drops all state of an object that is gone.
func (e *engine[T, W]) forget(key types.NamespacedName) {
	e.forgetState(key)
	e.specManagers.Forget(key)
	_ = e.references.set(key, nil) // without references there is nothing to watch
}

// forgetReplaced drops the state of an earlier object of the same name. If an object is deleted
// and created again during a reconcile, no reconcile finds the name free. The cache has noted
// the author of the new object already, so that name stays.
func (e *engine[T, W]) forgetReplaced(key types.NamespacedName, obj T) {
	before, known := e.uids.Get(key)
	if known && before == obj.GetUID() {
		return
	}
	if known {
		e.forgetState(key)
	}
	e.uids.Put(key, obj.GetUID())
}

func (e *engine[T, W]) forgetState(key types.NamespacedName) {
	e.release(key)
	e.tracker.Forget(key)
	e.applier.Forget(key)
	e.issuer.Forget(key)
	e.backoff.Forget(key)
	e.objectState.forget(key)
	e.revisions.Forget(key)
}
