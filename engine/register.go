package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// Register runs the application under the operator, as soon as its CRD exists. The operator may
// run already.
func Register[T lifecycle.Resource, W any](op *Operator, app App[T, W]) error {
	if app.Workers <= 0 {
		app.Workers = 8
	}
	app.Timeout = cmp.Or(app.Timeout, driverTimeout)
	err := register(op, app)
	if err != nil {
		return fmt.Errorf("cannot register the application %s: %w", app.Name, err)
	}
	return nil
}

func register[T lifecycle.Resource, W any](op *Operator, app App[T, W]) error {
	if app.Name == "" {
		return errors.New("the Name is empty; it must be a label value, such as memcached")
	}
	if wrong := validation.IsValidLabelValue(app.Name); len(wrong) > 0 {
		return fmt.Errorf("the Name %q is no label value: %s", app.Name, strings.Join(wrong, ", "))
	}
	if err := cmp.Or(app.checkKinds(op.mgr.GetScheme()), lifecycle.CheckStepTypes(app.Steps)); err != nil {
		return err
	}
	app.Planner = lifecycle.Strict(app.Planner, app.Steps)
	gvk, err := apiutil.GVKForObject(app.newObject(), op.mgr.GetScheme())
	if err != nil {
		return err
	}
	r, err := op.registered.add(gvk.GroupKind(), app.Name)
	if err != nil {
		return err
	}
	s := &supervisor[T, W]{operator: op, app: app, ahead: &forecast.Forecaster[T, W]{Holdable: app.Holdable}, registration: r}
	r.forget = func() { op.forgetWebhooks(gvk, app.FormerVersions); metrics.Unregister(app.Name) }
	if err := op.mgr.Add(s); err != nil {
		op.registered.remove(gvk.GroupKind())
		return err
	}
	return registerWebhooks(op, app, s.ahead)
}

// access is what a driver with the client gets.
func (op *Operator) access(c client.Client) kube.Access {
	return kube.Access{Client: c, Live: op.mgr.GetAPIReader(), Config: op.mgr.GetConfig(), HTTP: op.mgr.GetHTTPClient(), Now: op.options.Now}
}

// Unregister stops the application of the kind, and returns when its last reconcile has ended and
// nothing of it is left in memory. The kind can then be registered again. Its objects, and what
// belongs to them, stay in the cluster as they are; an object with a finalizer keeps it, and is
// deleted when the kind is registered again.
func (op *Operator) Unregister(ctx context.Context, kind schema.GroupKind) error {
	r, ok := op.registered.get(kind)
	if !ok {
		return fmt.Errorf("no application of the kind %s is registered", kind)
	}
	r.stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("the application of the kind %s has not ended: %w", kind, context.Cause(ctx))
	case <-r.ended:
	}
	r.forget()
	op.registered.remove(kind)
	return nil
}

// registry has the applications of an operator by their kinds.
type registry struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]*registration
}

// registration is the life of one application.
type registration struct {
	name string
	// ended is closed when the application has ended, or will never begin.
	ended chan struct{}
	// forget drops what is left of it in memory.
	forget func()

	mu      sync.Mutex
	stopped bool
	cancel  context.CancelFunc
}

func (r *registry) add(kind schema.GroupKind, name string) (*registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, registered := range r.kinds {
		if other == kind {
			return nil, fmt.Errorf("the kind %s is registered as %s already", kind, registered.name)
		}
		if registered.name == name {
			return nil, fmt.Errorf("the kind %s has the same Name; each kind needs its own", other)
		}
	}
	if r.kinds == nil {
		r.kinds = map[schema.GroupKind]*registration{}
	}
	added := &registration{name: name, ended: make(chan struct{})}
	r.kinds[kind] = added
	return added, nil
}

func (r *registry) get(kind schema.GroupKind) (*registration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.kinds[kind]
	return found, ok
}

func (r *registry) remove(kind schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, kind)
}

// begin returns the context of the application, and false if it was stopped before it began.
func (r *registration) begin(ctx context.Context) (context.Context, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return ctx, false
	}
	ctx, r.cancel = context.WithCancel(ctx)
	return ctx, true
}

// stop makes the application end. One that has not begun never will.
func (r *registration) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
	case r.cancel == nil:
		close(r.ended)
	default:
		r.cancel()
	}
	r.stopped = true
}
