package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// ErrImpossible says that a manipulation cannot be done to the instance at present, such
// as when there is no object of the kind. Another one is chosen.
var ErrImpossible = errors.New("it cannot be done")

// Instance is an instance of an application, and what an experiment does with it.
type Instance interface {
	// String is TYPE/NAME.
	String() string
	// Look returns how the instance is.
	Look(ctx context.Context) (State, error)
	// Others says which act of another experiment is under way; empty if none is.
	Others(ctx context.Context) (string, error)
	// Names returns the objects to which Do would do the manipulation, or [ErrImpossible].
	Names(ctx context.Context, m chaos.Manipulation, target int) ([]string, error)
	// Announce records that a manipulation is about to be done, or how it ended.
	Announce(ctx context.Context, a Act) error
	// Do does the manipulation to the target-th of the objects, modulo their number. With an
	// error it may have been done in part.
	Do(ctx context.Context, m chaos.Manipulation, target int) (Done, error)
	// Steps are the steps that the operator took since the time.
	Steps(ctx context.Context, since time.Time) ([]string, error)
}

// Done is what a manipulation did.
type Done struct {
	Objects []string
	// Undo ends what lasts; nil if nothing does.
	Undo func(context.Context) error
	// Healed reports whether each object is as it was, or was replaced.
	Healed func(context.Context) (bool, error)
}
