package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/engine/internal/rollback"
	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/engine/internal/wake"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/credential"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// engine reconciles the objects of one application.
type engine[T lifecycle.Resource, W any] struct {
	app      App[T, W]
	operator *Operator
	client   client.Client
	live     client.Reader
	driver   lifecycle.Driver[T, W]
	applier  *apply.Applier
	filler   *credential.Filler
	tracker  *readyourwrites.Tracker
	history  *historystore.Store
	objectState[W]
	specManagers *caching.SpecManagers
	references   *wake.References
	gvk          schema.GroupVersionKind
	revisions    *revision.Store

	// What assemble makes of the above.
	policies  *enforce.Kind
	specs     *specchange.Finder[T]
	rollback  *rollback.Planner[T]
	judge     *hold.Judge[T, W]
	publisher *publish.Publisher

	queue wake.Running
}

func newEngine[T lifecycle.Resource, W any](
	op *Operator, app App[T, W], c client.Client, t *readyourwrites.Tracker, names *caching.SpecManagers,
) (*engine[T, W], error) {
	gvk, err := c.GroupVersionKindFor(app.newObject())
	if err != nil {
		return nil, err
	}
	watched, err := app.watchedObjects(op.mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	live := op.mgr.GetAPIReader()
	schemas, err := discovery.NewDiscoveryClientForConfigAndClient(op.mgr.GetConfig(), op.mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	applier := apply.New(app.Name, c, live, t, app.Owns, schemas.OpenAPIV3WithContext(context.Background()), op.options.Now)
	e := &engine[T, W]{
		app: app, operator: op, client: c, live: live, tracker: t, specManagers: names, references: wake.NewReferences(), gvk: gvk,
		driver:  app.Driver(op.access(t.Client(app.Name, caching.IndexedBy(c, watched)))),
		applier: applier,
		filler:  credential.New(applier, op.options.Now),
		history: historystore.New(app.Name, op.options.Version, c, live),

		revisions: revision.NewStore(app.Name, gvk, op.options.Namespaces, c, live),
	}
	e.assemble()
	e.publisher.Recorder = op.mgr.GetEventRecorder(op.options.Name)
	return e, nil
}

// assemble makes the rooms of the engine from what all of them share.
func (e *engine[T, W]) assemble() {
	e.policies = &enforce.Kind{GVK: e.gvk, Store: e.operator.policies, Client: e.client, Live: e.live, Now: e.now}
	e.specs = &specchange.Finder[T]{Kind: e.gvk, New: e.app.newObject, Revisions: e.revisions, History: e.history}
	e.rollback = &rollback.Planner[T]{Revisions: e.revisions, Specs: e.specs, Retain: e.app.Abilities.Retain}
	e.judge = &hold.Judge[T, W]{
		Planner: e.app.Planner, Gates: e.app.Gates, Abilities: e.app.Abilities, Policies: e.policies, Specs: e.specs, Now: e.now,
	}
	e.publisher = &publish.Publisher{
		Client: e.client, Tracker: e.tracker, History: e.history, Revisions: e.revisions, Policies: e.policies,
		Budget: e.operator.budget, Progress: metrics.NewProgress(e.app.Name, e.now), Now: e.now, Holder: e.holder, Wake: e.Wake,
		Backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		Throttle: publish.Throttle{
			Interval: e.app.StatusInterval, Delay: e.app.StatusDelay, Now: e.now,
			IsBusy:       func() bool { return e.queue.Len() > e.app.Workers },
			ReportsDrift: func(obj lifecycle.Resource) bool { return e.policies.ReportsDrift(obj) },
		},
	}
	for _, g := range e.app.Gates {
		e.publisher.Gates = append(e.publisher.Gates, g.Name)
	}
}

// view is what forecasts of the objects are made from.
func (e *engine[T, W]) view() *forecast.View[T, W] {
	return &forecast.View[T, W]{
		Judge: e.judge, Driver: e.driver, Applier: e.applier, Filler: e.filler, History: e.history, Client: e.client,
		Budget: e.operator.budget, Version: e.operator.options.Version, TryTemplate: e.app.TryTemplate,
		WatchesPods: e.app.watchesPods(), DeletesInSteps: e.app.Finalize || e.app.Holdable,
	}
}
