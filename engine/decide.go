package engine

import (
	"context"

	"github.com/governor-dev/governor/lifecycle"
)

func (e *engine[T, W]) decide(ctx context.Context, r *reconciliation[T, W]) {
	r.decided = true
	next := e.app.Planner.Next(r.obj, r.seen, e.now())
	if r.blocked != nil {
		next, r.decided = e.besideBlocked(ctx, r, next)
	}
	r.decision = e.traced(ctx, r, next)
	e.undo(ctx, r)
}

// traced is the decision with the cause that began it all.
func (e *engine[T, W]) traced(ctx context.Context, r *reconciliation[T, W], d lifecycle.Decision) lifecycle.Decision {
	repairs := func(s lifecycle.Step) bool { return e.originOf(ctx, r.obj, r.seen, s) == fromWorld }
	return e.causes.Trace(r.key, d, repairs, func() lifecycle.Cause { return e.recorded(ctx, r.obj) })
}
