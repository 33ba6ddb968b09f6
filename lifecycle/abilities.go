package lifecycle

// Warner is an optional ability of a [Planner]: it warns about a spec that is valid and
// may still surprise its author.
//
// kubectl apply shows the warnings, also with --dry-run=server. They refuse nothing:
// what must not be declared is refused by the validation of the CRD.
type Warner[T Resource] interface {
	// Warnings returns warnings about declaring want. With old, the object before the
	// change, it speaks of what the change does, and not of what was true before it. On
	// creation old is nil.
	//
	// Each warning is one or two sentences without line breaks: the state, the reason and
	// the next step. All together have at most 256 characters, because API servers may cut
	// off the rest. Warnings is pure.
	Warnings(old, want T) []string
}

// Forecaster is an optional ability of a [Planner]: it describes what the application
// still does in a world, for the preview of a step.
type Forecaster[W any] interface {
	// Impact says what is left and what could still fail, e.g. "2 of 3 voters serve, none
	// may fail". It is pure.
	Impact(during W) string
}

// UnknownsReporter is an optional ability of a [Planner]: it lists what is not known about
// a world, so that a preview names what it builds on.
type UnknownsReporter[W any] interface {
	// Unknowns returns sentences, e.g. "etcd-2 does not answer." It is pure.
	Unknowns(seen W) []string
}

// ResourcePreviewer is an optional ability of a [Planner] whose world depends on what the
// engine adds to Resources, such as certificates. Without it, a preview knows only the
// world in which they do not exist yet.
type ResourcePreviewer[T Resource, W any] interface {
	// WithResources returns the world once the objects exist: those that Resources
	// returned for want, with their certificates filled in. It is pure.
	WithResources(want T, seen W, objects []Object) W
}

// EvidenceProvider is an optional ability of a [Planner]: it names the facts behind a
// step, for the history.
type EvidenceProvider[W any] interface {
	// Evidence returns a few short sentences, e.g. "etcd-2: a voter that does not answer
	// since its pod is gone." It is pure.
	Evidence(seen W, step Step) []string
}

// Depender is an optional ability of a [Planner] whose repairs go on while an object of
// Resources cannot be applied, e.g. because another object has its name. Without it, the
// engine takes no step until all of Resources exists.
type Depender[T Resource] interface {
	// DependsOn reports whether the step needs the object of that kind, as Resources
	// returned it. It is pure.
	DependsOn(want T, step Step, kind string, obj Object) bool
}

// Retainer is an optional ability of a [Planner] whose objects have fields that the API
// server does not let users set back, such as the size of a volume.
type Retainer[T Resource] interface {
	// Retain prepares the return to the earlier spec of an object. It copies each field
	// that cannot be set back from now into earlier, and changes nothing else. It returns
	// one clause for each field whose value differed, e.g. "spec.storage.size stays 2Gi, as
	// volumes only grow". It is pure.
	Retain(now, earlier T) []string
}

// ImageLister is an optional ability of a [Planner]: it names the images of a plan, so that a
// preview lists those that no pod has run.
type ImageLister[T Resource] interface {
	// Images returns the images of the pods that the steps and the Resources of want create.
	// It is pure.
	Images(want T, steps []Step) []string
}
