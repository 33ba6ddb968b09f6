package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// origin is what a step that a planner takes for a change of the spec goes back to.
type origin int

const (
	// fromChange is a change of the spec since all was last as declared.
	fromChange origin = iota
	// fromNew is a new object: no other spec of it has been as declared before.
	fromNew
	// fromWorld is the world: the spec that worked last needs the same step now.
	fromWorld
)

// originOf distinguishes a step that carries out a change of the spec from a repair. A planner
// sees the world and not its past, so the engine asks it for the step of the spec that
// worked last. What is unknown counts as a change: a freeze holds it.
func (e *engine[T, W]) originOf(ctx context.Context, obj T, seen W, step lifecycle.Step) origin {
	if deleting(obj) {
		return fromChange // a deletion is a change that was never there before
	}
	was, err := e.revisions.Settled(ctx, obj)
	switch {
	case err != nil:
		logf.FromContext(ctx).V(1).Info("the origin of a step is unknown", "cause", err.Error())
		return fromChange
	case was:
		return fromWorld
	}
	return e.counterfactual(ctx, obj, seen, step)
}

// neededBefore reports whether the spec that worked last needs the same step now, although
// the present one has not worked yet.
func (e *engine[T, W]) neededBefore(ctx context.Context, obj T, seen W, step lifecycle.Step) bool {
	was, err := e.revisions.Settled(ctx, obj)
	return err == nil && !was && e.counterfactual(ctx, obj, seen, step) == fromWorld
}

// counterfactual asks for the step that the spec which worked last would need.
func (e *engine[T, W]) counterfactual(ctx context.Context, obj T, seen W, step lifecycle.Step) origin {
	before, err := e.settledBefore(ctx, obj)
	last := before.last
	switch {
	case err != nil:
		return fromChange
	case last.Number == 0:
		return before.none
	}
	want, err := e.respecified(obj, last)
	if err != nil || last.APIVersion != e.gvk.GroupVersion().String() {
		return fromChange
	}
	if next := e.app.Planner.Next(want, seen, e.now()).Step; next.Name == step.Name && next.Target == step.Target {
		return fromWorld
	}
	return fromChange
}

// settledSpec is the revision that settled last before one spec of an object.
type settledSpec struct {
	uid        types.UID
	generation int64
	digest     string
	last       revision.Revision // of number 0 if no other spec has settled
	none       origin            // of the steps of an object without such a revision
}

// lastSettled is the last revision with another spec that has settled; one of number 0 if
// there is none.
func (e *engine[T, W]) lastSettled(ctx context.Context, obj T) (revision.Revision, error) {
	before, err := e.settledBefore(ctx, obj)
	return before.last, err
}

// settledBefore is what settled before the present spec. It is read once for each spec of a
// generation.
func (e *engine[T, W]) settledBefore(ctx context.Context, obj T) (settledSpec, error) {
	key := client.ObjectKeyFromObject(obj)
	_, digest, err := revision.SpecOf(obj)
	if err != nil {
		return settledSpec{}, err
	}
	of := settledSpec{uid: obj.GetUID(), generation: obj.GetGeneration(), digest: digest}
	if known, ok := e.settled.Get(key); ok && known.uid == of.uid && known.generation == of.generation && known.digest == digest {
		return known, nil
	}
	all, err := e.revisions.List(ctx, obj)
	if err != nil {
		return settledSpec{}, err
	}
	of.last, _ = revision.LastSettled(all, digest)
	of.none = originWithoutSettled(all)
	e.settled.Put(key, of)
	return of, nil
}

// originWithoutSettled is the origin of the steps of an object of which no other spec is known
// to have settled. If the present spec settled before, the change since then was undone. If
// revisions are missing, one of them may have settled.
func originWithoutSettled(all []revision.Revision) origin {
	settled := slices.ContainsFunc(all, func(r revision.Revision) bool { return r.Settled })
	if settled || revision.Complete(all) {
		return fromNew
	}
	return fromChange
}
