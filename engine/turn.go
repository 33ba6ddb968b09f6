package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// cacheLagRequeue is when to look again whether the cache has caught up, in case that the
// event which brings the write also ends a turn that came too early.
const cacheLagRequeue = 100 * time.Millisecond

// engine runs the turns of one application.
type engine[T lifecycle.Resource, W any] struct {
	app             App[T, W]
	operator        *Operator
	client          client.Client
	driver          lifecycle.Driver[T, W]
	applier         *apply.Applier
	issuer          *certificate.Issuer
	tracker         *readyourwrites.Tracker
	recorder        recorder.EventRecorder
	history         *historyStore
	backoff         workqueue.TypedRateLimiter[types.NamespacedName]
	progress        *progress
	lastStatusWrite objectMap[time.Time] // when each status was last written
	pendingStatus   objectMap[pendingStatus]
	applyCache      applyCache[W]
	waits           waits
	causes          causes
	specManagers    *specManagers
	gvk             schema.GroupVersionKind

	revisions       *revision.Store
	rollbackTargets rollbackTargets
	settled         objectMap[settledSpec]
	queue           atomic.Pointer[queue]
}

func newEngine[T lifecycle.Resource, W any](
	op *Operator, app App[T, W], c client.Client, t *readyourwrites.Tracker, names *specManagers,
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
		app: app, operator: op, client: c, tracker: t, specManagers: names, gvk: gvk,
		driver:   app.Driver(t.Client(app.Name, indexedBy(c, app.Watches)), live),
		applier:  applier,
		issuer:   certificate.New(applier, op.options.Now),
		recorder: op.mgr.GetEventRecorder(op.options.Name),
		history:  &historyStore{app: app.Name, client: c, live: live, version: op.options.Version},
		backoff:  workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		progress: newProgress(app.Name, op.options.Now),

		revisions: revision.NewStore(app.Name, gvk, op.options.Namespaces, c, live),
	}, nil
}

// result is what one turn found out and did; tell makes everything public of it.
type result[T lifecycle.Resource, W any] struct {
	key      types.NamespacedName
	before   T      // as read, for what is new
	obj      T      // as it will be told
	author   string // the field manager that set its spec; empty if nobody knows
	seen     W
	observed bool
	changes  []apply.Change
	blocked  *blocked            // what cannot be provided while repairs go on; nil if all can
	drift    bool                // the changes repair what someone else changed
	drifts   []apply.Drift       // what someone else changed and is left as it is
	overdue  []string            // Secrets that are not renewed while it is paused
	spared   []string            // what is provided where drift is only reported
	sight    *lifecycle.Decision // what would be decided if it were not paused
	issued   []certificate.Issued
	due      time.Time // when a certificate is to be looked at again; zero if there is none
	decision lifecycle.Decision
	taken    *stepResult
	refusals []lifecycle.Refusal
	queued   bool                // it waits for a slot of the budget
	held     *heldDeletion[T, W] // the deletion, if policies hold it
	approval *history.Approval   // what let the step pass, if it needed one
	bypass   *history.Bypass     // what let it pass policies that hold it
	expires  time.Time           // when an approval of the object ends; zero if none does
	same     bool                // the status says it all already
	again    time.Time           // when a wait behind a held wish is looked at; zero if there is none
	later    time.Time           // when it is told what is not told now; zero if it is
	done     []apply.Change      // the changes of this turn, and of those before that told nothing
	began    time.Time
	decided  bool // the decision is about the object's present generation
	paused   bool
	panicked bool
	released bool

	cause error

	lostLease bool // nothing more may be done or told
}

// stepResult is a step that was acted on.
type stepResult struct {
	step  lifecycle.Step
	began time.Time
	took  time.Duration
	err   error
	own   bool // it is the engine's own step, and no gate was asked
}

// Reconcile implements reconcile.Reconciler: one turn for one object.
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
	e.causes.meet(key, unfinished(obj))
	r := &result[T, W]{key: key, before: obj, obj: obj.DeepCopyObject().(T), author: e.specManagers.of(key), began: e.now()}
	if len(rolledBack(obj)) > 0 {
		r.author = RollbackManager // what it only took away is recorded in nobody's name
	}
	if e.over(obj) {
		e.release(key)
		e.operator.policies.note(e.holder(key), nil) // it is counted until it is gone
		return reconcile.Result{}, nil
	}
	e.runStages(readyourwrites.WithOwner(ctx, key), r)
	if r.lostLease {
		return reconcile.Result{RequeueAfter: cacheLagRequeue}, nil // the process is about to stop
	}
	return e.publish(ctx, r)
}

// over reports whether nothing is left to do for an object that is being deleted:
// Kubernetes clears up what it owns.
func (e *engine[T, W]) over(obj T) bool {
	return deleting(obj) && !hasFinalizer(obj)
}

func deleting(obj lifecycle.Object) bool { return obj.GetDeletionTimestamp() != nil }

// runStages is the turn up to the telling. Each stage either leaves a decision, and the
// turn is over, or hands on to the next.
func (e *engine[T, W]) runStages(ctx context.Context, r *result[T, W]) {
	defer e.recoverPanic(ctx, r)
	stages := []func(context.Context, *result[T, W]){
		e.hold, e.claim, e.observe, e.pause, e.provide, e.decide, e.judge, e.act, e.finalize,
	}
	for _, stage := range stages {
		if r.lostLease = !e.operator.mayAct(); r.lostLease {
			return
		}
		stage(ctx, r)
		if r.over() {
			return
		}
	}
}

// over reports whether the turn has its result: anything but a step to be taken.
func (r *result[T, W]) over() bool {
	outcome := r.decision.Outcome
	leavingSettled := outcome == lifecycle.OutcomeSettled && deleting(r.obj) && !r.released
	return r.paused || r.released || outcome != lifecycle.OutcomeNone && outcome != lifecycle.OutcomeProceed && !leavingSettled || r.taken != nil
}

var cannotObserve = lifecycle.RetryIn(0, "CannotObserve", "The operator cannot see the application; nothing is changed until it can.")

func cannotRender(err error) lifecycle.Decision {
	if decided := (&lifecycle.DecisionError{}); errors.As(err, &decided) {
		return decided.Decision
	}
	return lifecycle.Block("CannotRender", err.Error())
}

func (e *engine[T, W]) observe(ctx context.Context, r *result[T, W]) {
	seen, err := e.driver.Observe(e.maintained(ctx, r.obj), r.obj)
	if err != nil {
		r.cause = err
		r.decision = cannotObserve
		return
	}
	r.seen, r.observed = seen, true
}

// pause ends the turn of a paused object: it was observed, and nothing is written
// but its status. Deletion ends the pause, or the object would hold back its
// namespace for ever.
func (e *engine[T, W]) pause(ctx context.Context, r *result[T, W]) {
	if r.paused = e.isPaused(r.obj) && !deleting(r.obj); r.paused {
		e.observeOnly(ctx, r)
		r.decision.Reason, r.decision.Message = lifecycle.ConditionPaused, e.whyPaused(r.obj)
	}
}

func (e *engine[T, W]) provide(ctx context.Context, r *result[T, W]) {
	lenient := e.reportsDrift(r.obj) && !deleting(r.obj)
	due, still := e.applyCache.unchanged(r.key, r.obj, r.seen, e.now())
	if still && !lenient {
		r.due = due
		return
	}
	news := e.applyCache.news(r.key)
	wanted, err := e.app.Planner.Resources(r.obj, r.seen)
	if err != nil {
		r.cause = err
		r.decision = cannotRender(err)
		return
	}
	r.drift = e.isProvided(ctx, r)
	err = e.apply(ctx, r, wanted, lenient)
	switch {
	case err != nil:
		e.stumble(r, err)
	case len(r.changes) == 0 && !lenient:
		e.applyCache.learn(r.key, news, &basis[W]{r.obj.GetUID(), r.obj.GetResourceVersion(), r.seen, r.due})
	}
}

// apply makes the wanted objects exist, with the certificates that they ask for. If it
// is lenient, what others changed stays.
func (e *engine[T, W]) apply(ctx context.Context, r *result[T, W], wanted []lifecycle.Object, lenient bool) error {
	filled, err := e.issuer.Fill(ctx, r.obj, wanted)
	if err != nil {
		return err
	}
	r.due = filled.Due
	if lenient {
		err = e.applyAroundDrift(ctx, r, wanted, filled.Objects)
	} else {
		r.changes, err = e.applier.Apply(ctx, r.obj, filled.Objects)
	}
	r.issued = written(filled.Issued, r.changes)
	return err
}

// written are those whose Secret was changed: a refused write has issued nothing.
func written(all []certificate.Issued, changes []apply.Change) []certificate.Issued {
	return slices.DeleteFunc(all, func(i certificate.Issued) bool {
		return !slices.ContainsFunc(changes, func(c apply.Change) bool { return c.Kind == "Secret" && c.Name == i.Secret })
	})
}

func (e *engine[T, W]) decide(ctx context.Context, r *result[T, W]) {
	r.decided = true
	next := e.app.Planner.Next(r.obj, r.seen, e.now())
	if r.blocked != nil {
		next, r.decided = e.besideBlocked(ctx, r, next)
	}
	r.decision = e.traced(ctx, r, next)
	e.undo(ctx, r)
}

// traced is the decision with the cause that began it all.
func (e *engine[T, W]) traced(ctx context.Context, r *result[T, W], d lifecycle.Decision) lifecycle.Decision {
	repairs := func(s lifecycle.Step) bool { return e.originOf(ctx, r.obj, r.seen, s) == fromWorld }
	return e.causes.trace(r.key, d, repairs, func() lifecycle.Cause { return e.recorded(ctx, r.obj) })
}

func (e *engine[T, W]) now() time.Time { return e.operator.options.Now() }

func (e *engine[T, W]) act(ctx context.Context, r *result[T, W]) {
	if r.decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	step, log := r.decision.Step, logf.FromContext(ctx)
	if r.said().Reason == postponed {
		log = log.V(1) // it is tried again and again, and was said once
	}
	log.Info("step", "step", step.String(), "class", step.Class, "reason", step.Reason)
	began := e.now()
	r.taken = &stepResult{step: step, began: began}
	r.taken.err = e.driver.Act(e.maintained(ctx, r.obj), r.obj, r.seen, step)
	r.taken.took = e.now().Sub(began)
	if r.taken.err != nil {
		r.failed(step)
	}
}

// failed tells a step that went wrong from one that was not even begun, which is
// nothing to be remembered.
func (r *result[T, W]) failed(step lifecycle.Step) {
	r.cause = r.taken.err
	r.decision = explain(r.taken.err)
	switch {
	case r.decision.Reason == apiError:
		r.decision = lifecycle.RetryIn(0, "StepFailed", "The step "+step.String()+" failed: "+r.taken.err.Error())
	case r.decision.Outcome == lifecycle.OutcomeRetry:
		r.taken, r.cause = nil, nil
	}
	r.decision.Step = step
}

// wake lets the object take another turn now.
func (e *engine[T, W]) wake(key types.NamespacedName) {
	if q := e.queue.Load(); q != nil {
		(*q).Add(reconcile.Request{NamespacedName: key})
	}
}

func (e *engine[T, W]) holder(key types.NamespacedName) string {
	return e.app.Name + " " + key.String()
}

// release gives back what a leaving object held.
func (e *engine[T, W]) release(key types.NamespacedName) {
	e.operator.budget.release(e.holder(key))
	e.operator.policies.drop(e.holder(key))
	e.progress.forget(key)
	e.lastStatusWrite.forget(key)
	e.pendingStatus.forget(key)
	e.applyCache.forget(key)
	e.waits.forget(key)
	e.causes.forget(key)
}

func (e *engine[T, W]) forget(key types.NamespacedName) {
	e.release(key)
	e.tracker.Forget(key)
	e.applier.Forget(key)
	e.issuer.Forget(key)
	e.backoff.Forget(key)
	e.specManagers.forget(key)
	e.revisions.Forget(key)
	e.rollbackTargets.forget(key)
	e.settled.forget(key)
}
