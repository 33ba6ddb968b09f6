// Package specchange distinguishes a change of the spec from a repair: it knows which spec of an
// object worked last.
package specchange

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	wholejson "k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// Origin is what a step that a planner takes for a change of the spec goes back to.
type Origin int

const (
	// FromChange is a change of the spec since all was last as declared.
	FromChange Origin = iota
	// FromNew is a new object: no other spec of it has been as declared before.
	FromNew
	// FromWorld is the world: the spec that worked last needs the same step now.
	FromWorld
)

// Finder knows which spec of an object worked last, from its revisions and its history. It is safe
// for concurrent use.
type Finder[T lifecycle.Resource] struct {
	Kind schema.GroupVersionKind
	// New returns an empty object of the kind.
	New       func() T
	Revisions *revision.Store
	History   *historystore.Store

	known memory.Map[settledSpec]
}

// OriginOf distinguishes a step that carries out a change of the spec from a repair. A planner
// sees the world and not its past, so needs reports whether another spec needs the same step, and
// is asked for the one that worked last. What is unknown counts as a change: a freeze holds it.
func (f *Finder[T]) OriginOf(ctx context.Context, obj T, needs func(want T) bool) Origin {
	if obj.GetDeletionTimestamp() != nil {
		return FromChange // a deletion is a change that was never there before
	}
	was, err := f.Revisions.Settled(ctx, obj)
	switch {
	case err != nil:
		logf.FromContext(ctx).V(1).Info("the origin of a step is unknown", "cause", err.Error())
		return FromChange
	case was:
		return FromWorld
	}
	return f.counterfactual(ctx, obj, needs)
}

// NeededBefore reports whether the spec that worked last needs the same step now, although
// the present one has not worked yet.
func (f *Finder[T]) NeededBefore(ctx context.Context, obj T, needs func(want T) bool) bool {
	was, err := f.Revisions.Settled(ctx, obj)
	return err == nil && !was && f.counterfactual(ctx, obj, needs) == FromWorld
}

// counterfactual asks whether the spec which worked last would need the step.
func (f *Finder[T]) counterfactual(ctx context.Context, obj T, needs func(want T) bool) Origin {
	_, want, found := f.lastSettled(ctx, obj)
	if found == FromWorld && !needs(want) {
		return FromChange
	}
	return found
}

// WorkedBefore returns the object with the spec that worked last, if the present one has not
// worked, and FromWorld. It returns FromNew if the present spec is no change of one that worked, and
// FromChange if that is unknown.
func (f *Finder[T]) WorkedBefore(ctx context.Context, obj T) (last revision.Revision, want T, found Origin) {
	worked, err := f.Revisions.Settled(ctx, obj)
	switch {
	case err != nil:
		return last, obj, FromChange
	case worked:
		return last, obj, FromNew
	}
	return f.lastSettled(ctx, obj)
}

// lastSettled is WorkedBefore of an object whose present spec has not worked.
func (f *Finder[T]) lastSettled(ctx context.Context, obj T) (last revision.Revision, want T, found Origin) {
	before, err := f.settledBefore(ctx, obj)
	switch {
	case err != nil:
		return last, obj, FromChange
	case before.last.Number == 0:
		return last, obj, before.none
	case before.last.APIVersion != f.Kind.GroupVersion().String():
		return last, obj, FromChange
	}
	if want, err = f.Respecified(obj, before.last); err != nil {
		return last, obj, FromChange
	}
	return before.last, want, FromWorld
}

// Respecified is the object with the spec of the revision.
func (f *Finder[T]) Respecified(obj T, to revision.Revision) (T, error) {
	want := f.New()
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return want, err
	}
	var spec map[string]any
	if err := wholejson.Unmarshal(to.Spec, &spec); err != nil {
		return want, fmt.Errorf("revision %d cannot be read: %w", to.Number, err)
	}
	all["spec"] = spec
	return want, runtime.DefaultUnstructuredConverter.FromUnstructured(all, want)
}

// Forget drops what is known of an object that is gone.
func (f *Finder[T]) Forget(key types.NamespacedName) { f.known.Forget(key) }

// settledSpec is the revision that settled last before one spec of an object.
type settledSpec struct {
	uid        types.UID
	generation int64
	digest     string
	last       revision.Revision // of number 0 if no other spec has settled
	none       Origin            // of the steps of an object without such a revision
}

// settledBefore is what settled before the present spec. It is read once for each spec of a
// generation.
func (f *Finder[T]) settledBefore(ctx context.Context, obj T) (settledSpec, error) {
	key := client.ObjectKeyFromObject(obj)
	_, digest, err := revision.SpecOf(obj)
	if err != nil {
		return settledSpec{}, err
	}
	of := settledSpec{uid: obj.GetUID(), generation: obj.GetGeneration(), digest: digest}
	if known, ok := f.known.Get(key); ok && known.uid == of.uid && known.generation == of.generation && known.digest == digest {
		return known, nil
	}
	all, err := f.Revisions.List(ctx, obj)
	if err != nil {
		return settledSpec{}, err
	}
	of.last, _ = revision.LastSettled(all, digest)
	if of.none = originWithoutSettled(all); len(all) == 0 && f.hadRevisions(ctx, obj) {
		of.none = FromChange
		f.Revisions.NoteLost(obj)
	}
	f.known.Put(key, of)
	return of, nil
}

// originWithoutSettled is the origin of the steps of an object of which no other spec is known
// to have settled. If the present spec settled before, the change since then was undone. If
// revisions are missing, one of them may have settled.
func originWithoutSettled(all []revision.Revision) Origin {
	settled := slices.ContainsFunc(all, func(r revision.Revision) bool { return r.Settled })
	if settled || revision.Complete(all) {
		return FromNew
	}
	return FromChange
}

// hadRevisions reports whether the object must have had a revision, although none is left: it was
// as declared before, or the history has a step of it. A history that cannot be read counts as one.
func (f *Finder[T]) hadRevisions(ctx context.Context, obj T) bool {
	_, conditions := obj.StatusFields()
	if apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionReady) {
		return true
	}
	kept, book, err := f.History.Open(ctx, obj)
	return err != nil || metav1.IsControlledBy(kept, obj) && len(book.Entries) > 0
}
