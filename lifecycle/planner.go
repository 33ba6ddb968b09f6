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

// Resource is a custom resource that the engine can reconcile. An API type implements it
// with one method on its pointer:
//
//	func (r *Ring) StatusFields() (*int64, *[]metav1.Condition) {
//		return &r.Status.ObservedGeneration, &r.Status.Conditions
//	}
type Resource interface {
	Object

	// StatusFields returns the status fields that the engine writes. A Planner must not
	// decide from them.
	StatusFields() (observedGeneration *int64, conditions *[]metav1.Condition)
}

// DecisionError is an error with a decision, which waits or blocks and says why. As an
// error of [Planner.Resources] it means that nothing may be applied: the engine applies
// nothing and, unlike after an empty list, prunes nothing. As an error of [Driver.Act] it
// means that the step was refused.
type DecisionError struct{ Decision Decision }

// Error implements error.
func (e *DecisionError) Error() string { return e.Decision.Message }

// Planner holds an application's rules about objects of type T in worlds of type W. Every
// method is pure: the same arguments give the same result, without I/O, clock or
// randomness. Arguments are read-only, except want in Status.
type Planner[T Resource, W any] interface {
	// Resources returns the objects that must exist. The engine uses server-side apply: a
	// field that is not set belongs to others. Names must be stable; the engine sets the
	// namespace and the owner. An error means that want cannot be rendered; the user sees
	// it unchanged. The engine does not call Resources again while want, seen and the
	// objects of want are unchanged since all of them existed.
	Resources(want T, seen W) ([]Object, error)

	// Next returns the one decision that comes next: first finish a change that has begun,
	// then repair, then change. For an object with a deletion timestamp it returns the
	// finalization steps; Settled then removes the finalizer.
	Next(want T, seen W, now time.Time) Decision

	// Effect returns the world during the step, at its worst, and after its success. For
	// the step of a wait, after is the world at the successful end of the wait.
	Effect(want T, seen W, step Step) (during, after W)

	// Status writes seen into the application's own status fields of want. It is
	// deterministic: sorted, without clock readings.
	Status(want T, seen W)

	// Conditions returns the application's own conditions. The engine adds Ready,
	// Reconciling and Stalled, which follow from the decision.
	Conditions(want T, seen W, d Decision) []Condition
}

// NoConditions can be embedded by a Planner without conditions of its own.
type NoConditions[T Resource, W any] struct{}

// Conditions implements Planner.
func (NoConditions[T, W]) Conditions(T, W, Decision) []Condition { return nil }

// Driver does the I/O of the same application.
type Driver[T Resource, W any] interface {
	// Observe returns the present world. Something that does not answer is a value in W
	// (unknown, since when) and no error. An error means that nothing is known.
	Observe(ctx context.Context, obj T) (W, error)

	// Act performs the step. It is idempotent and takes seconds at most; longer work is a
	// Job that a later Observe sees. It fails if the world has changed since seen, with a
	// [Deferred] if it did nothing. Both calls must return when ctx ends: the engine limits them.
	Act(ctx context.Context, obj T, seen W, step Step) error
}

// Labels and annotations that the engine and its applications agree on.
const (
	// LabelApp names the application on everything that belongs to its objects, including
	// pods. The engine watches only objects with it.
	LabelApp = "governor.dev/app"

	// Finalizer keeps an object while its deletion has steps, or a policy can hold its deletion.
	Finalizer = "governor.dev/finalize"

	// LabelInstance is the name of the custom resource that an object belongs to. The engine
	// reconciles that resource when the object changes.
	LabelInstance = "app.kubernetes.io/instance"

	// LabelName is the standard label for the kind of software.
	LabelName = "app.kubernetes.io/name"

	// LabelManagedBy is the standard label for the managing tool.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelApplied marks an object that Resources returned, which the engine may prune.
	LabelApplied = "governor.dev/applied"

	// AnnotationPaused with the value "true" makes the engine observe only.
	AnnotationPaused = "governor.dev/paused"

	// AnnotationBypass lets the steps of an object pass the windows, freezes, approvals and
	// waves of all policies in an emergency. Its value is the reason, which the history and
	// an event repeat. The application's gates and the budgets still apply.
	AnnotationBypass = "governor.dev/bypass-policy" //nolint:gosec // a name, no secret

	// AnnotationBypassBy is the name of the user that set AnnotationBypass, which the history
	// repeats. The ValidatingAdmissionPolicy governor-bypass refuses any other name.
	AnnotationBypassBy = "governor.dev/bypass-policy-by" //nolint:gosec // a name, no secret

	// AnnotationAuthor is the name of the user that changed the spec of an object last, or that
	// answers for a change without a recorded author. The policy of examples/authors.yaml
	// writes it, and the ValidatingAdmissionPolicy governor-author refuses any other name.
	AnnotationAuthor = "governor.dev/author"

	// AnnotationAuthorGeneration is the generation of which AnnotationAuthor is the author. After
	// a change that passed no admission policy it is an older one.
	AnnotationAuthorGeneration = "governor.dev/author-generation"

	// AnnotationDrift with the value DriftRepair marks an object of Resources on which the
	// safety of data depends. The engine restores it also where policies only report drift.
	AnnotationDrift = "governor.dev/drift"
	// DriftRepair is the value of AnnotationDrift.
	DriftRepair = "Repair"

	// AnnotationPreview on an object in a dry run asks for a preview: "update" of the sent
	// object, "delete" of its deletion, "rollback" of the return to the sent earlier spec.
	// The response has the preview as JSON in its place. The annotation has no meaning on a
	// stored object.
	AnnotationPreview = "governor.dev/preview"
)
