package engine

import (
	"context"

	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/lifecycle"
)

func (e *engine[T, W]) decide(ctx context.Context, r *reconciliation[T, W]) {
	r.Decided = true
	next, spared := e.judge.Next(r.obj, r.seen)
	r.Drifts = append(r.Drifts, spared...)
	next = e.pastStuck(ctx, r, next)
	if r.Blocked != nil {
		next, r.Decided = e.repairDespiteBlocked(ctx, r, next)
	}
	r.Decision = e.withCause(ctx, r, next)
	e.undo(ctx, r)
}

// withCause is the decision with the cause that began it all.
func (e *engine[T, W]) withCause(ctx context.Context, r *reconciliation[T, W], d lifecycle.Decision) lifecycle.Decision {
	repairs := func(s lifecycle.Step) bool { return e.judge.OriginOf(ctx, r.obj, r.seen, s) == specchange.FromWorld }
	return e.causes.Trace(r.Key, d, repairs, func() lifecycle.Cause { return e.history.LastCause(ctx, r.obj) })
}
