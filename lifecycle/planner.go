package lifecycle

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Resource is a custom resource that the engine can run. An API type implements it
// with one method on its pointer:
//
//	func (r *Ring) Told() (*int64, *[]metav1.Condition) {
//		return &r.Status.ObservedGeneration, &r.Status.Conditions
//	}
type Resource interface {
	Object

	// StatusFields returns where the engine writes what it tells about the object. Both
	// belong to the engine: a Planner must not decide from them.
	StatusFields() (observedGeneration *int64, conditions *[]metav1.Condition)
}

// Pausable is a custom resource that carries its own switch for pausing, besides
// the annotation [AnnotationPaused], which works on every kind.
type Pausable interface {
	// IsPaused reports whether the user asked the operator to keep its hands off.
	IsPaused() bool
}

// DecisionError is an error that says by itself what the user is told. Of Resources it means
// that nothing may be provided now: nothing is applied, and, unlike after an empty list,
// nothing is pruned. Of Driver.Act it means that the step was refused.
type DecisionError struct{ Decision Decision }

// Error implements error.
func (e *DecisionError) Error() string { return e.Decision.Message }

// Planner is an application's judgement about objects of type T in worlds of type
// W. Every method is pure: the same arguments give the same answer, with no I/O,
// clock or randomness. Arguments are read-only, except want in Status.
type Planner[T Resource, W any] interface {
	// Resources returns what must exist and cannot hurt by existing. The engine
	// applies it by server-side apply: a field that is not set is left to others.
	// Names must be stable; the namespace and owner are set by the engine. An
	// error means that want cannot be rendered: it is told to the user as it is.
	// While want, seen and what belongs to the object are as they were when all of it
	// existed, it is not asked again.
	Resources(want T, seen W) ([]Object, error)

	// Next returns the one decision that comes next. Finishing a change already
	// begun comes first, then repairs, then wishes. With a deletion timestamp on
	// want it offers the farewell steps; Settled then lets the object go.
	Next(want T, seen W, now time.Time) Decision

	// Effect returns the world during the step, at its worst, and after it went
	// well. For the step of a Wait, after is the world when the wait ended well.
	Effect(seen W, step Step) (during, after W)

	// Status writes what was seen into the application's own status fields of
	// want, deterministically (sorted, without clock readings).
	Status(want T, seen W)

	// Conditions returns the application's own conditions. Ready, Reconciling and
	// Stalled follow from the decision and are added by the engine.
	Conditions(want T, seen W, d Decision) []Condition
}

// NoConditions is for a Planner to embed that has no conditions of its own.
type NoConditions[T Resource, W any] struct{}

// Conditions implements Planner.
func (NoConditions[T, W]) Conditions(T, W, Decision) []Condition { return nil }

// Driver is the same application's contact with the world.
type Driver[T Resource, W any] interface {
	// Observe returns the world as it is. What does not answer is a value in W
	// (unknown, since when), not an error; an error means that nothing is known.
	Observe(ctx context.Context, obj T) (W, error)

	// Act performs the step. It is idempotent, short (seconds; longer work is a
	// Job that a later Observe sees), and fails if the world moved since seen: with
	// a [Postponed] if it did nothing.
	Act(ctx context.Context, obj T, seen W, step Step) error
}

// Labels and annotations that the engine and its applications agree on.
const (
	// LabelApp names the application on everything that belongs to its objects,
	// pods included. The engine watches nothing without it.
	LabelApp = "governor.dev/app"

	// LabelInstance is the name of the custom resource that an object belongs to.
	// The engine wakes that resource when the labelled object changes.
	LabelInstance = "app.kubernetes.io/instance"

	// LabelName is the standard label for the kind of software.
	LabelName = "app.kubernetes.io/name"

	// LabelManagedBy is the standard label for the tool in charge.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelApplied marks what Resources returned and the engine may prune.
	LabelApplied = "governor.dev/provided"

	// AnnotationPaused with the value "true" makes the engine observe only.
	AnnotationPaused = "governor.dev/paused"

	// AnnotationBypass lets the steps of an object pass the windows, freezes, approvals
	// and waves of all policies, in an emergency; its value is the reason, which the
	// history and an event repeat. The application's own gates and the budgets stay.
	AnnotationBypass = "governor.dev/bypass-policy" //nolint:gosec // a name, no secret

	// AnnotationBypassBy is the name of the user who set AnnotationBypass, which the history
	// repeats. The install's ValidatingAdmissionPolicy governor-bypass refuses any other name.
	AnnotationBypassBy = "governor.dev/bypass-policy-by" //nolint:gosec // a name, no secret

	// AnnotationAuthor is the name of the user who changed the spec of an object last, or who
	// answers for a change whose author was not recorded. The policy of examples/authors.yaml
	// writes it, and the install's ValidatingAdmissionPolicy governor-author refuses any other name.
	AnnotationAuthor = "governor.dev/author"

	// AnnotationAuthorGeneration is the generation that AnnotationAuthor is about: a change that
	// did not pass the admission policies makes it an older one.
	AnnotationAuthorGeneration = "governor.dev/author-generation"

	// AnnotationDrift on an object of Resources, with the value DriftRepair, says that it is
	// put back after an edit or a deletion also where policies only report drift: the safety
	// of data rests on it.
	AnnotationDrift = "governor.dev/drift"
	// DriftRepair is that value.
	DriftRepair = "Repair"

	// AnnotationPreview on an object in a dry run asks for a preview: "update" of the
	// object as it is sent, "delete" of its deletion, "rollback" of the return to the
	// earlier spec that is sent. What comes back has the preview
	// as JSON in its place. It has no meaning on an object that is stored.
	AnnotationPreview = "governor.dev/preview"
)
