package hold

import (
	"context"

	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/lifecycle"
)

// OriginOf distinguishes a step that carries out a change of the spec from a repair.
func (j *Judge[T, W]) OriginOf(ctx context.Context, obj T, seen W, step lifecycle.Step) specchange.Origin {
	return j.Specs.OriginOf(ctx, obj, j.needs(seen, step))
}

// NeededBefore reports whether the spec that worked last needs the same step now, although
// the present one has not worked yet.
func (j *Judge[T, W]) NeededBefore(ctx context.Context, obj T, seen W, step lifecycle.Step) bool {
	return j.Specs.NeededBefore(ctx, obj, j.needs(seen, step))
}

// needs returns whether the planner decides for the same step for another spec.
func (j *Judge[T, W]) needs(seen W, step lifecycle.Step) func(want T) bool {
	return func(want T) bool {
		next, _ := j.Next(want, seen)
		return SameTarget(next.Step, step)
	}
}

// RestoresLost reports whether a routine step that the planner takes for a change brings back what
// the world lost.
func (j *Judge[T, W]) RestoresLost(ctx context.Context, obj T, seen W, step lifecycle.Step) bool {
	return !step.Class.IsDisruptive() && j.OriginOf(ctx, obj, seen, step) == specchange.FromWorld
}
