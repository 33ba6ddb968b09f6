package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

// driverTimeout is the default limit for Observe and Act.
const driverTimeout = 30 * time.Second

// errTimeout is the cause of a driver's context that has ended by App.Timeout.
var errTimeout = errors.New("the driver's time is over")

// limited is the context for one call of the driver.
func (e *engine[T, W]) limited(ctx context.Context, obj T) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(e.policies.Maintained(ctx, obj), e.app.Timeout, errTimeout)
}

// observeFor returns the world for the object with a spec that is not its present one.
func (e *engine[T, W]) observeFor(ctx context.Context, want T) (W, error) {
	ctx, cancel := e.limited(ctx, want)
	defer cancel()
	return e.driver.Observe(readyourwrites.WithoutWrites(ctx), want)
}

func (e *engine[T, W]) observe(ctx context.Context, r *reconciliation[T, W]) {
	ctx, cancel := e.limited(ctx, r.obj)
	defer cancel()
	seen, err := e.driver.Observe(readyourwrites.WithoutWrites(ctx), r.obj)
	switch {
	case err == nil:
		r.seen, r.Observed = seen, true
	case errors.Is(context.Cause(ctx), errTimeout):
		r.Decision = lifecycle.RetryIn(0, explain.CannotObserve.Reason, fmt.Sprintf(
			"The operator has not seen the application within %s; nothing is changed until it does.", e.app.Timeout))
	default:
		r.Decision, r.Cause = explain.CannotObserve, err
	}
}
