package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// again is how long to leave an application alone that could not start.
	again = 5 * time.Second
	// firstRetry and lastRetry bound the growing delay of retries.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// supervisor runs one application while its CRD exists. Each run has a cache of
// its own, limited to what bears the application's label, which goes away whole
// when the CRD does.
type supervisor[T lifecycle.Resource, W any] struct {
	operator *Operator
	app      App[T, W]
	ahead    *forecast.Forecaster[T, W]
	*registration
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a standby keeps
// its caches warm, and only reconciles wait for leadership.
func (s *supervisor[T, W]) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *supervisor[T, W]) Start(ctx context.Context) error {
	ctx, begins := s.begin(ctx)
	if !begins {
		return nil
	}
	defer close(s.ended)
	s.operator.running.Add(1)
	defer s.operator.running.Done()
	log := s.operator.mgr.GetLogger().WithValues("app", s.app.Name)
	gvk, err := apiutil.GVKForObject(s.app.newObject(), s.operator.mgr.GetScheme())
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		s.once(ctx, log, gvk)
	}
	return nil
}

// once waits for the CRD and runs the application until the CRD is gone.
func (s *supervisor[T, W]) once(ctx context.Context, log logr.Logger, gvk schema.GroupVersionKind) {
	metrics.Running.WithLabelValues(s.app.Name).Set(0)
	log.Info("waiting for the CRD", "kind", gvk.Kind, "group", gvk.Group)
	err := s.operator.kinds.While(ctx, gvk, func(ctx context.Context) error {
		log.Info("running", "kind", gvk.Kind, "group", gvk.Group)
		return s.run(ctx)
	})
	if err != nil && ctx.Err() == nil {
		log.Error(err, "the application could not run and will be started again", "in", again)
		pause(ctx, again)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (s *supervisor[T, W]) run(ctx context.Context) error {
	names := &caching.SpecManagers{}
	store, err := s.newCache(ctx, names)
	if err != nil {
		return err
	}
	e, err := s.newEngine(store, names)
	if err != nil {
		return err
	}
	if driver, ok := e.driver.(io.Closer); ok {
		defer func() { _ = driver.Close() }()
	}
	c, err := s.newController(e, store)
	if err != nil {
		return err
	}
	if err := s.watchIn(ctx, e.references, c); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- store.Start(ctx) }()
	if err := s.warm(ctx, c); err != nil {
		return err
	}
	s.operator.policies.Await(ctx)
	defer s.operator.policies.Join(e.gvk.GroupKind(), e)()
	defer s.ahead.Begin(e.view())()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	case <-s.operator.mgr.Elected():
	}
	metrics.Running.WithLabelValues(s.app.Name).Set(1)
	defer metrics.ForgetApp(s.app.Name)
	defer s.operator.budget.ReleaseApp(s.app.Name)
	defer s.operator.policies.DropApp(s.app.Name)
	return c.Start(ctx)
}

// warm fills the queue and the caches while another operator still leads.
func (s *supervisor[T, W]) warm(ctx context.Context, c controller.Controller) error {
	w, ok := c.(interface{ Warmup(context.Context) error })
	if !ok {
		return errors.New("this controller cannot be warmed up")
	}
	return w.Warmup(ctx)
}

func (s *supervisor[T, W]) newEngine(store cache.Cache, names *caching.SpecManagers) (*engine[T, W], error) {
	mgr := s.operator.mgr
	c, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: store, Unstructured: true},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	tracker := readyourwrites.New(c, mgr.GetAPIReader(), s.operator.options.Now)
	return newEngine(s.operator, s.app, c, tracker, names)
}

func (s *supervisor[T, W]) newController(e *engine[T, W], store cache.Cache) (controller.Controller, error) {
	yes := true
	c, err := controller.NewUnmanaged(s.app.Name, controller.Options{
		Reconciler:              e,
		MaxConcurrentReconciles: s.app.Workers,
		SkipNameValidation:      &yes, // one after the other, as the CRD comes and goes
		EnableWarmup:            &yes,
		UsePriorityQueue:        &yes,
		Logger:                  s.operator.mgr.GetLogger(),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			firstRetry, lastRetry),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a controller: %w", err)
	}
	return c, s.watch(c, e, store)
}
