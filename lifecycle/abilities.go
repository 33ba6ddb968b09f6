package lifecycle

// Abilities are what an application can do beyond its [Planner]. Every function is optional and
// pure; nil means that the application does not have the ability.
type Abilities[T Resource, W any] struct {
	// IsPaused reports whether the user paused the object in a field of its own, besides the
	// annotation [AnnotationPaused], which works on every kind.
	IsPaused func(want T) bool

	// Warnings returns warnings about declaring want: the spec is valid and may still surprise
	// its author. With old, the object before the change, it speaks of what the change does,
	// and not of what was true before it. On creation old is nil.
	//
	// kubectl apply shows the warnings, also with --dry-run=server. They refuse nothing: what
	// must not be declared is refused by the validation of the CRD. Each warning is one or two
	// sentences without line breaks: the state, the reason and the next step. All together have
	// at most 256 characters, because API servers may cut off the rest.
	Warnings func(old, want T) []string

	// Impact describes what the application still does in a world, for the preview of a step:
	// what is left and what could still fail, e.g. "2 of 3 voters serve, none may fail".
	Impact func(want T, during W) string

	// Unknowns returns sentences about what is not known about a world, so that a preview names
	// what it builds on, e.g. "etcd-2 does not answer."
	Unknowns func(want T, seen W) []string

	// WithResources returns the world once the objects exist: those that Resources returned for
	// want, with their certificates filled in. An application needs it if its world depends on
	// what the engine adds to Resources. Without it, a preview knows only the world in which
	// they do not exist yet.
	WithResources func(want T, seen W, objects []Object) W

	// Evidence returns the facts behind a step for the history, in a few short sentences, e.g.
	// "etcd-2: a voter that does not answer since its pod is gone."
	Evidence func(want T, seen W, step Step) []string

	// DependsOn reports whether the step needs the object of that kind, as Resources returned
	// it. With it, repairs go on while an object of Resources cannot be applied, e.g. because
	// another object has its name. Without it, the engine takes no step until all of Resources
	// exists.
	DependsOn func(want T, step Step, kind string, obj Object) bool

	// AppliesChange reports whether the step gives its target something of the spec that the
	// target does not have yet, such as a new version. With it, no repair carries out a change of
	// the spec that policies hold, although the spec that worked last does not need the repair.
	AppliesChange func(want T, seen W, step Step) bool

	// Retain prepares the return to the earlier spec of an object whose kind has fields that the
	// API server does not let users set back, such as the size of a volume. It copies each of
	// them from now into earlier, and changes nothing else. It returns one clause for each field
	// whose value differed, e.g. "spec.storage.size stays 2Gi, as volumes only grow".
	Retain func(now, earlier T) []string

	// Protect copies from now into earlier what protects data, such as the retention of volumes, and
	// changes nothing else. No policy holds that: a repair that uses the spec that worked last, while
	// policies hold the present one, uses it with these fields.
	Protect func(now, earlier T)

	// References returns the objects that want uses and does not own, such as a Secret of the
	// user. A change of one of them reconciles the custom resource. The driver reads them from
	// the API server. The operator needs the rights to list and watch their kinds.
	References func(want T) []Reference

	// Images returns the images of the pods that the steps and the Resources of want create. A
	// preview lists those that no pod has run.
	Images func(want T, steps []Step) []string
}
