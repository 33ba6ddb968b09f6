package engine

import (
	"context"

	"github.com/governor-dev/governor/lifecycle"
)

func (e *engine[T, W]) decide(ctx context.Context, r *reconciliation[T, W]) {
	r.decided = true
	next := e.app.Planner.Next(r.obj, r.seen, e.now())
	if r.blocked != nil {
		next, r.decided = e.repairDespiteBlocked(ctx, r, next)
	}
	r.decision = e.withCause(ctx, r, next)
	e.undo(ctx, r)
}

// withCause is the decision with the cause that began it all.
func (e *engine[T, W]) withCause(ctx context.Context, r *reconciliation[T, W], d lifecycle.Decision) lifecycle.Decision {
	repairs := func(s lifecycle.Step) bool { return e.originOf(ctx, r.obj, r.seen, s) == fromWorld }
	return e.causes.Trace(r.key, d, repairs, func() lifecycle.Cause { return e.recordedCause(ctx, r.obj) })
}
