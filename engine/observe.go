package engine

import (
	"context"

	"github.com/governor-dev/governor/lifecycle"
)

var cannotObserve = lifecycle.RetryIn(0, "CannotObserve", "The operator cannot see the application; nothing is changed until it can.")

func (e *engine[T, W]) observe(ctx context.Context, r *reconciliation[T, W]) {
	seen, err := e.driver.Observe(e.maintained(ctx, r.obj), r.obj)
	if err != nil {
		r.cause = err
		r.decision = cannotObserve
		return
	}
	r.seen, r.observed = seen, true
}
