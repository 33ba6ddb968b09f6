package hold

import (
	"context"
	"errors"
	"slices"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Blocked are objects that cannot be applied before a user acts.
type Blocked struct {
	Objects  []*apply.Failure
	Decision lifecycle.Decision
}

// DespiteBlocked returns the repair that goes on while objects cannot be provided, and true. Otherwise the
// decision is about these objects.
func (j *Judge[T, W]) DespiteBlocked(ctx context.Context, obj T, seen W, next lifecycle.Decision, b *Blocked) (lifecycle.Decision, bool) {
	if !j.restores(ctx, obj, seen, next) {
		next = next.Instead(func(s lifecycle.Step) bool { return j.NeededBefore(ctx, obj, seen, s) })
	}
	if next.Outcome == lifecycle.OutcomeProceed && !j.needsBlocked(obj, next.Step, b) {
		return next, true
	}
	return b.Decision, false
}

// restores reports whether the decision is to wait, or a step that brings back what the
// world lost: a repair, or a routine step that a spec which has worked needs.
func (j *Judge[T, W]) restores(ctx context.Context, obj T, seen W, d lifecycle.Decision) bool {
	step := d.Step
	return d.Outcome == lifecycle.OutcomeWait || d.Outcome == lifecycle.OutcomeProceed && (step.Intent == lifecycle.IntentRepair ||
		j.RestoresLost(ctx, obj, seen, step))
}

func (j *Judge[T, W]) needsBlocked(obj T, step lifecycle.Step, b *Blocked) bool {
	dependsOn := j.Abilities.DependsOn
	return dependsOn == nil || slices.ContainsFunc(b.Objects, func(f *apply.Failure) bool {
		var ownerless *apply.OwnerDeletingError // it exists, with its content
		return !errors.As(f, &ownerless) && dependsOn(obj, step, f.Kind, f.Object)
	})
}
