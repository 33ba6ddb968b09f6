package sim

import (
	"errors"
	"fmt"
)

// Errors that the simulator lets an effect return. A model passes them on.
var (
	// ErrConflict is the API server's answer to a write based on an old version.
	ErrConflict = errors.New("conflict: the object was changed meanwhile")
	// ErrAPI is the API server's answer on a bad day.
	ErrAPI = errors.New("the API server did not answer")
)

// crash is thrown where the operator dies, and caught by the turn.
type crash struct{ before string }

// Effects is the door through which a model changes the world on the operator's
// behalf. Between any two effects the operator may die.
type Effects struct {
	faults *faultInjector
	note   func(format string, args ...any)
	check  func()
	count  int
}

// Do performs one effect. It returns ErrConflict or ErrAPI instead when the
// weather is bad; then, as in life, the effect may have happened all the same.
func (fx *Effects) Do(name string, effect func() error) error {
	if fx.faults.happens(Crash) {
		panic(crash{before: name})
	}
	if err := fx.faults.refusal(); err != nil {
		fx.note("  effect %s: %v", name, err)
		return err
	}
	if err := effect(); err != nil {
		fx.note("  effect %s: %v", name, err)
		return err
	}
	fx.count++
	fx.note("  effect %s", name)
	fx.check()
	if fx.faults.happens(LostAnswer) {
		return fmt.Errorf("%s: %w", name, ErrAPI)
	}
	return nil
}

// NoFaults returns effects in weather without faults, for tests that drive a model
// themselves.
func NoFaults() *Effects {
	return &Effects{faults: &faultInjector{stopped: true}, note: func(string, ...any) {}, check: func() {}}
}
