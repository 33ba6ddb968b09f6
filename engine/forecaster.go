package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// warningTimeout is how long warnings at kubectl apply and delete may take. The API server gives
// the webhook one second.
const warningTimeout = 700 * time.Millisecond

// Silence would read as "nothing happens".
const (
	stepsUnknown    = `Governor could not compute the steps in time. Run "kubectl governor plan" to see them.`
	deletionUnknown = `Governor could not compute in time what goes and what stays. Run "kubectl governor plan --delete" before you delete.`
)

// errNotRunning says that this replica does not know the application's world yet.
var errNotRunning = errors.New("the application is not running here yet")

// errUnseen says that nothing is known of the world.
var errUnseen = errors.New("the operator cannot see the application")

// forecaster says what will happen to an object. Every replica has it: each can
// observe, only the leader acts.
type forecaster[T lifecycle.Resource, W any] struct{ engine atomic.Pointer[engine[T, W]] }

// future is a plan, object and world at its end, and what was known and not known at its
// beginning.
type future[T lifecycle.Resource, W any] struct {
	preview.Plan
	want     T
	seen     W
	first    W
	unknowns []string
}

// plan returns the future of want in the world that belongs to now, the object as it is.
func (f *forecaster[T, W]) plan(ctx context.Context, now, want T) (future[T, W], error) {
	e := f.engine.Load()
	if e == nil {
		return future[T, W]{}, errNotRunning
	}
	seen, err := e.driver.Observe(e.maintained(ctx, now), now)
	if err != nil {
		return future[T, W]{}, fmt.Errorf("%w: %w", errUnseen, err)
	}
	objects, err := e.app.Planner.Resources(want, seen)
	if err != nil {
		return future[T, W]{preview.Terminal(cannotRender(err)).Plan, want, seen, seen, nil}, nil
	}
	first := e.provided(ctx, now, want, seen, objects)
	plan, end, world := e.foreseer(ctx, now, want).Unroll(want, first, e.now())
	return future[T, W]{plan, end, world, first, e.unknowns(want, seen)}, nil
}

// provided is the world once the resources are there, as they are before the first
// step is taken. An error of a dry run is reported with their changes.
func (e *engine[T, W]) provided(ctx context.Context, now, want T, seen W, objects []lifecycle.Object) W {
	withResources := e.app.Abilities.WithResources
	if withResources == nil || deleting(want) {
		return seen
	}
	filled, err := e.issuer.Fill(ctx, now, objects)
	if err != nil {
		return seen
	}
	return withResources(want, seen, filled.Objects)
}

func (e *engine[T, W]) unknowns(want T, seen W) []string {
	if e.app.Abilities.Unknowns == nil {
		return nil
	}
	return e.app.Abilities.Unknowns(want, seen)
}

// warnOfDeletion says what goes and what stays when the object is deleted, and what would
// hold that.
func (f *forecaster[T, W]) warnOfDeletion(ctx context.Context, obj T, orphan bool) []string {
	ctx, cancel := context.WithTimeout(ctx, warningTimeout)
	defer cancel()
	e := f.engine.Load()
	if e == nil || !e.app.Holdable {
		return nil
	}
	if orphan {
		return []string{fmt.Sprintf("Kubernetes deletes the %s alone: all that belongs to %s stays and runs on, and the operator looks after it no more.",
			e.gvk.Kind, obj.GetName())}
	}
	going := obj.DeepCopyObject().(T)
	going.SetDeletionTimestamp(new(metav1.NewTime(e.now())))
	seen, err := e.driver.Observe(e.maintained(ctx, going), going)
	if err != nil || ctx.Err() != nil {
		return []string{deletionUnknown}
	}
	d := e.app.Planner.Next(going, seen, e.now())
	if d.Outcome != lifecycle.OutcomeProceed {
		return nil
	}
	said := []string{d.Message}
	if v := e.selecting(going).Judge(e.question(ctx, going, seen, d.Step)); len(v.Refusals) > 0 {
		said = append(said, lifecycle.Held(d.Step, v.Refusals...).Message)
	}
	return said
}

// warn is the plan in a sentence, or says that it could not be had in time.
func (f *forecaster[T, W]) warn(ctx context.Context, old, want T) []string {
	ctx, cancel := context.WithTimeout(ctx, warningTimeout)
	defer cancel()
	now := old
	if none := *new(T); any(old) == any(none) {
		now = want // it is being created
	}
	e := f.engine.Load()
	if e == nil || e.isPaused(want) || want.GetAnnotations()[lifecycle.AnnotationPreview] != "" {
		return nil // nothing will happen, or the preview reports all of it
	}
	next, err := f.plan(ctx, now, want)
	if err != nil || ctx.Err() != nil {
		return []string{stepsUnknown}
	}
	var said []string
	for _, sentence := range []string{next.Summary(), holding(e.overseen(ctx, now, next))} {
		if sentence != "" {
			said = append(said, sentence)
		}
	}
	return said
}
