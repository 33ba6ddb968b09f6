// Package forecast says what will happen to an object: previews, and warnings at kubectl apply and delete.
package forecast

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/credential"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// warningTimeout is how long warnings at kubectl apply and delete may take. The API server gives
// the webhook three seconds. After that it shows no warning, so most of the time is for a machine
// under load.
const warningTimeout = time.Second

// Warnings when none can be computed: silence would read as "nothing happens".
const (
	StepsUnknown    = `Governor could not compute the steps in time. Run "kubectl governor plan" to see them.`
	DeletionUnknown = `Governor could not compute in time what goes and what stays. Run "kubectl governor plan --delete" before you delete.`
)

// errNotRunning says that this replica does not know the application's world yet.
var errNotRunning = errors.New("the application is not running here yet")

// errUnseen says that nothing is known of the world.
var errUnseen = errors.New("the operator cannot see the application")

// Forecaster says what will happen to an object. Every replica has it: each can
// observe, only the leader acts.
type Forecaster[T lifecycle.Resource, W any] struct {
	// Holdable is that of the application.
	Holdable bool

	view atomic.Pointer[View[T, W]] // nil until the application runs here
}

// View is what a forecast is made from while the application runs.
type View[T lifecycle.Resource, W any] struct {
	Judge   *hold.Judge[T, W]
	Driver  lifecycle.Driver[T, W]
	Applier *apply.Applier
	Filler  *credential.Filler
	History *historystore.Store
	Client  client.Client
	Budget  *budget.Budget
	// Version is that of the operator.
	Version string
	// TryTemplate is that of the application; nil if it has none.
	TryTemplate func(ctx context.Context, c client.Client, want T, seen W) W
	// WatchesPods reports whether Client has the pods of the application.
	WatchesPods bool
	// DeletesInSteps reports whether a deletion takes steps.
	DeletesInSteps bool
}

// Begin makes forecasts from the view, until the returned function is called.
func (f *Forecaster[T, W]) Begin(v *View[T, W]) (end func()) {
	f.view.Store(v)
	return func() { f.view.Store(nil) }
}

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
func (f *Forecaster[T, W]) plan(ctx context.Context, now, want T) (future[T, W], error) {
	v := f.view.Load()
	if v == nil {
		return future[T, W]{}, errNotRunning
	}
	seen, err := v.Driver.Observe(readyourwrites.WithoutWrites(v.Judge.Policies.Maintained(ctx, now)), now)
	if err != nil {
		return future[T, W]{}, fmt.Errorf("%w: %w", errUnseen, err)
	}
	objects, err := v.Judge.Planner.Resources(want, seen)
	if err != nil {
		return future[T, W]{preview.Terminal(explain.Rendering(err)).Plan, want, seen, seen, nil}, nil
	}
	first := v.tryTemplate(ctx, want, v.provided(ctx, now, want, seen, objects))
	plan, end, world := v.Judge.Foreseer(ctx, now, want).Unroll(want, first, v.Judge.Now())
	return future[T, W]{plan, end, world, first, v.unknowns(want, first)}, nil
}

// provided is the world once the resources are there, as they are before the first
// step is taken. An error of a dry run is reported with their changes.
func (v *View[T, W]) provided(ctx context.Context, now, want T, seen W, objects []lifecycle.Object) W {
	withResources := v.Judge.Abilities.WithResources
	if withResources == nil || deleting(want) {
		return seen
	}
	filled, err := v.Filler.Fill(ctx, now, objects)
	if err != nil {
		return seen
	}
	return withResources(want, seen, filled.Objects)
}

// tryTemplate is the world with what the API server says to pods of want.
func (v *View[T, W]) tryTemplate(ctx context.Context, want T, seen W) W {
	if v.TryTemplate == nil || deleting(want) {
		return seen
	}
	return v.TryTemplate(ctx, v.Client, want, seen)
}

func (v *View[T, W]) unknowns(want T, seen W) []string {
	if v.Judge.Abilities.Unknowns == nil {
		return nil
	}
	return v.Judge.Abilities.Unknowns(want, seen)
}

// WarnOfDeletion says what goes and what stays when the object is deleted, and what would
// hold that.
func (f *Forecaster[T, W]) WarnOfDeletion(ctx context.Context, obj T, orphan bool) []string {
	ctx, cancel := context.WithTimeout(ctx, warningTimeout)
	defer cancel()
	if !f.Holdable {
		return nil
	}
	v := f.view.Load()
	if v == nil {
		return []string{DeletionUnknown}
	}
	if orphan {
		return []string{fmt.Sprintf("Kubernetes deletes the %s alone: all that belongs to %s stays and runs on, and the operator looks after it no more.",
			v.Judge.Policies.GVK.Kind, obj.GetName())}
	}
	going := obj.DeepCopyObject().(T)
	going.SetDeletionTimestamp(new(metav1.NewTime(v.Judge.Now())))
	seen, err := v.Driver.Observe(readyourwrites.WithoutWrites(v.Judge.Policies.Maintained(ctx, going)), going)
	if err != nil || ctx.Err() != nil {
		return []string{DeletionUnknown}
	}
	d := v.Judge.Planner.Next(going, seen, v.Judge.Now())
	if d.Outcome != lifecycle.OutcomeProceed {
		return nil
	}
	said := []string{d.Message}
	if verdict := v.Judge.Policies.Selecting(going).Judge(v.Judge.Question(ctx, going, seen, d.Step)); len(verdict.Refusals) > 0 {
		said = append(said, lifecycle.Held(d.Step, verdict.Refusals...).Message)
	}
	return said
}

// Warn is the plan in a sentence, or says that it could not be had in time.
func (f *Forecaster[T, W]) Warn(ctx context.Context, old, want T) []string {
	ctx, cancel := context.WithTimeout(ctx, warningTimeout)
	defer cancel()
	now := old
	if none := *new(T); any(old) == any(none) {
		now = want // it is being created
	}
	if want.GetAnnotations()[lifecycle.AnnotationPreview] != "" {
		return nil // the preview reports all of it
	}
	v := f.view.Load()
	if v != nil && v.Judge.IsPaused(want) {
		return nil // nothing will happen
	}
	next, err := f.plan(ctx, now, want)
	if err != nil {
		return []string{StepsUnknown}
	}
	held := holding(v.overseen(ctx, now, next))
	if ctx.Err() != nil {
		return []string{StepsUnknown}
	}
	var said []string
	for _, sentence := range []string{next.Summary(), held} {
		if sentence != "" {
			said = append(said, sentence)
		}
	}
	return said
}

func deleting(obj lifecycle.Object) bool { return obj.GetDeletionTimestamp() != nil }
