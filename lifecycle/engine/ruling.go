package engine

// ruling is what declared policies say about one object, as far as undo and drift go:
// the names of those that want it, none if the default holds.
type ruling struct {
	// rollback puts the last spec that worked back when one has failed.
	rollback []string
	// report leaves what others change as it is, and says so.
	report []string
}

func (e *engine[T, W]) ruling(_ T) ruling { return ruling{} }
