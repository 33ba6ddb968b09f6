package lifecycle

// Retainer is an optional ability of a [Planner] whose objects have fields that the API
// server does not let users set back, such as the size of a volume.
type Retainer[T Resource] interface {
	// Retain prepares the return to the earlier spec of an object: it writes the present
	// value of each field that cannot be set back into earlier, and changes nothing else.
	// It returns one clause for each field whose value differed, e.g. "spec.storage.size
	// stays 2Gi, as volumes only grow". As all of a planner it is pure.
	Retain(now, earlier T) []string
}
