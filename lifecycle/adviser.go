package lifecycle

// Warner is what a [Planner] may be besides: someone who speaks up when a user
// declares something that is legal and yet may surprise.
//
// Advice is shown at kubectl apply, also with --dry-run=server, and refuses
// nothing: what must not be is the business of the CRD's validation. As all of a
// planner it is pure.
type Warner[T Resource] interface {
	// Warnings returns short warnings about declaring want. With old, the object as
	// it was, it speaks of what the change does and of what became true by it, not
	// of what was true before; on creation old is nil.
	//
	// Each warning is a sentence or two without line breaks, at most 256 characters
	// in all, as API servers may cut the rest: the state, the reason, the next step.
	Warnings(old, want T) []string
}

// Forecaster is what a [Planner] may be besides: someone who can say in a few words
// what the application still does in a world, for the preview of a step.
type Forecaster[W any] interface {
	// Impact says what is left and what could still fail, e.g. "2 of 3 voters
	// serve, none may fail". As all of a planner it is pure.
	Impact(during W) string
}

// UnknownsReporter is what a [Planner] may be besides: someone who can say what of a world is
// not known, for a preview to be honest about what it builds on.
type UnknownsReporter[W any] interface {
	// Unknowns returns sentences, e.g. "etcd-2 does not answer." As all of a planner it
	// is pure.
	Unknowns(seen W) []string
}

// ImageLister is what a [Planner] may be besides: one that can say which images a plan runs, so that a preview names those of
// which nobody knows whether they exist.
type ImageLister[T Resource] interface {
	// Images returns the images of the pods that the steps and the Resources of want make. As all of a planner it is pure.
	Images(want T, steps []Step) []string
}

// ResourcePreviewer is what a [Planner] may be besides: someone whose world depends on what the
// engine puts into Resources, such as certificates. Without it a preview knows only
// the world in which they are not yet there.
type ResourcePreviewer[T Resource, W any] interface {
	// WithResources returns the world once the objects are there: what Resources returned
	// for want in it, with certificates as they are, or as they would be, filled in.
	// As all of a planner it is pure.
	WithResources(want T, seen W, objects []Object) W
}

// EvidenceProvider is what a [Planner] may be besides: someone who can say what a step was
// decided on, for the history.
type EvidenceProvider[W any] interface {
	// Evidence returns a few short sentences or facts, e.g. "etcd-2: a voter that does
	// not answer since its pod is gone." As all of a planner it is pure.
	Evidence(seen W, step Step) []string
}

// Depender is what a [Planner] may be besides: someone whose repairs go on while an object of
// Resources cannot be provided, e.g. because another object has its name. Without it no step
// is taken until all of Resources is there.
type Depender[T Resource] interface {
	// DependsOn reports whether the step needs the object, of that kind, as Resources has it.
	// As all of a planner it is pure.
	DependsOn(want T, step Step, kind string, obj Object) bool
}
