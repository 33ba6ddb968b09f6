package sim

import (
	"errors"
	"fmt"
)

// Errors that the simulator lets an effect return. A model passes them on.
var (
	// ErrConflict is the API server's answer to a write based on an old version.
	ErrConflict = errors.New("conflict: the object was changed meanwhile")
	// ErrAPI is a call that the API server did not answer.
	ErrAPI = errors.New("the API server did not answer")
	// ErrRefused is the API server's answer to a step that a policy refuses.
	ErrRefused = errors.New("forbidden: a policy refuses the step")
)

// crash is the panic value of an operator that crashes. turn recovers it.
type crash struct{ before string }

// Effects carries out the operator's changes of the model. The operator may crash
// between any two of them.
type Effects struct {
	faults *faultInjector
	note   func(format string, args ...any)
	check  func()
	count  int
}

// Do performs one effect, or returns ErrConflict or ErrAPI if a fault strikes. As with a
// real API server, the effect may have happened although Do returns an error.
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

// NoFaults returns Effects without faults, for tests that drive a model themselves.
func NoFaults() *Effects {
	return &Effects{faults: &faultInjector{stopped: true}, note: func(string, ...any) {}, check: func() {}}
}
