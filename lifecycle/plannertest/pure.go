package plannertest

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/dump"

	"github.com/governor-dev/governor/lifecycle"
)

// asked is how often each method is called: a random result is rarely equal three times.
const asked = 3

// purityError is the panic for a mistake of a method; caught recovers it and adds the story.
type purityError struct {
	fault Fault
	says  string
}

// watched checks the purity of every call of a planner.
type watched[T lifecycle.Resource, W any] struct{ lifecycle.Planner[T, W] }

func (p watched[T, W]) Resources(want T, seen W) ([]lifecycle.Object, error) {
	type answer struct {
		objects []lifecycle.Object
		err     error
	}
	a := pure("Resources", []any{want, seen}, func() answer {
		objects, err := p.Planner.Resources(want, seen)
		return answer{objects, err}
	})
	return a.objects, a.err
}

func (p watched[T, W]) Next(want T, seen W, now time.Time) lifecycle.Decision {
	return pure("Next", []any{want, seen}, func() lifecycle.Decision { return p.Planner.Next(want, seen, now) })
}

func (p watched[T, W]) Effect(want T, seen W, step lifecycle.Step) (during, after W) {
	type answer struct{ during, after W }
	a := pure("Effect", []any{want, seen, step}, func() answer {
		during, after := p.Planner.Effect(want, seen, step)
		return answer{during, after}
	})
	return a.during, a.after
}

// Status may modify only want, and must be idempotent.
func (p watched[T, W]) Status(want T, seen W) {
	pure("Status", []any{seen}, func() T {
		written := want.DeepCopyObject().(T)
		p.Planner.Status(written, seen)
		return written
	})
	spec := want.DeepCopyObject().(T)
	p.Planner.Status(want, seen)
	once := dump.ForHash(want)
	p.Planner.Status(want, seen)
	if twice := dump.ForHash(want); once != twice {
		panic(purityError{FaultImpure, "Status writes something else when it is asked again for the same world, " +
			"so the status is never at rest: " + difference(once, twice)})
	}
	if changed := metadata(spec) != metadata(want); changed {
		panic(purityError{FaultMutatesInput, "Status changes the metadata of the object: only status fields are its own."})
	}
}

func metadata(obj lifecycle.Object) string {
	return dump.ForHash([]any{obj.GetName(), obj.GetLabels(), obj.GetAnnotations(), obj.GetFinalizers(), obj.GetGeneration()})
}

func (p watched[T, W]) Conditions(want T, seen W, d lifecycle.Decision) []lifecycle.Condition {
	return pure("Conditions", []any{want, seen, d}, func() []lifecycle.Condition { return p.Planner.Conditions(want, seen, d) })
}

// pure calls the method several times, and panics if the results differ or an argument changes.
func pure[A any](method string, given []any, ask func() A) A {
	before := dump.ForHash(given)
	answer := ask()
	first := dump.ForHash(answer)
	if after := dump.ForHash(given); after != before {
		panic(purityError{FaultMutatesInput, method + " changes what it was given; it must work on a copy: " + difference(before, after)})
	}
	for range asked - 1 {
		if again := dump.ForHash(ask()); again != first {
			panic(purityError{FaultImpure, method + " answers differently to the same question. " +
				"Time and chance are arguments, maps are iterated in a sorted order: " + difference(first, again)})
		}
	}
	return answer
}

// difference returns the difference of two dumps.
func difference(a, b string) string {
	return "\n" + cmp.Diff(apart(a), apart(b))
}

// apart puts each field of a dump on its own line.
func apart(s string) string { return strings.NewReplacer("{", "{\n", "}", "\n}", " ", "\n").Replace(s) }

// caught calls f and returns its purityError, or nil. A panic of the planner is a mistake, too.
func caught(f func()) (b *purityError) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case purityError:
			b = &thrown
		default:
			b = &purityError{FaultPanics, fmt.Sprintf("the planner panics: %v\n%s", thrown, culprit())}
		}
	}()
	f()
	return nil
}

// culprit returns the lines of the stack below the panic.
func culprit() string {
	_, below, _ := strings.Cut(string(debug.Stack()), "panic(")
	lines := strings.Split(below, "\n")
	return strings.Join(lines[min(2, len(lines)):min(8, len(lines))], "\n")
}
