// Package stuck remembers which steps of one object come to nothing: the API server refuses them,
// they fail again and again, or they have no effect. Such a step rests between its attempts, so
// that later repairs go on ([lifecycle.Decision.Past]) and no loop runs hot. Everything is a value,
// and the time is an argument: the engine and the simulator use the same rules.
package stuck

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/governor-dev/governor/lifecycle"
)

const (
	// limit is how many attempts in a row may come to nothing before the step counts as stuck. A second
	// one may follow a lost answer, or an observation that another system served from before the first.
	// A third has seen both. What the API server refuses is stuck at once: it asks for a person.
	limit = 3
	// reported is after how many attempts without effect a person is asked: half a minute after the
	// first. What Kubernetes deletes, for example, takes seconds to disappear.
	reported = limit + 5
)

// pauses are those between the attempts of a stuck step.
var pauses = wait.Backoff{Duration: time.Second, Factor: 2, Cap: 5 * time.Minute, Steps: 10}

// longestAfterError is the longest pause after an attempt that failed. Nothing reports that a policy
// or a quota was corrected, so it is how long that may go unnoticed. A step that succeeds in vain does
// something each time, and rests longer.
const longestAfterError = 30 * time.Second

// Steps are the steps of one object that were tried and are still wanted. The zero value has none.
// A method that changes them returns the result.
type Steps struct {
	generation int64
	tried      []attempts
}

// attempts are those of one step since the world last wanted something else.
type attempts struct {
	step    lifecycle.Step
	said    lifecycle.Decision // what is said while the step is stuck; not set if that is not reported yet
	count   int
	failed  bool // the last attempt
	stuck   bool
	pauses  wait.Backoff
	resting time.Time // until when
}

// Wanted returns the steps that the decision still wants. What is no longer wanted has had its
// effect, or the world has changed. A changed object is another beginning: a person may have
// corrected it.
func (s Steps) Wanted(d lifecycle.Decision, generation int64) Steps {
	if s.generation != generation {
		return Steps{generation: generation}
	}
	s.tried = slices.DeleteFunc(slices.Clone(s.tried), func(a attempts) bool { return !d.Wants(a.step) })
	return s
}

// Failed returns the steps after an attempt that failed, with the decision that explains the
// error.
func (s Steps) Failed(step lifecycle.Step, why lifecycle.Decision, now time.Time) Steps {
	a := s.of(step)
	a.said, a.failed = why, true
	a.count++
	a.stuck = a.stuck || why.Outcome == lifecycle.OutcomeBlocked
	return s.with(a.rest(now, longestAfterError))
}

// Done returns the steps after an attempt that succeeded. If the world then still wants the step,
// it had no effect. A message that has changed since the last attempt tells of progress: messages are
// the same for the same world. A success ends the failures before it.
func (s Steps) Done(step lifecycle.Step, now time.Time) Steps {
	a := s.of(step)
	switch {
	case a.step.Message != step.Message:
		a = attempts{pauses: pauses}
	case a.failed:
		a.count, a.stuck = 0, false
	}
	a.step, a.said, a.failed = step, lifecycle.Decision{}, false
	if a.count++; a.count >= reported {
		a.said = noEffect(step)
	}
	return s.with(a.rest(now, pauses.Cap))
}

func noEffect(step lifecycle.Step) lifecycle.Decision {
	d := lifecycle.Block("StepHasNoEffect", fmt.Sprintf(
		"The step %s succeeds and changes nothing: %s Look for another controller or a webhook that reverts it, and read the operator's log.", step, step.Message))
	d.Step = step
	return d
}

// rest ends an attempt.
func (a attempts) rest(now time.Time, longest time.Duration) attempts {
	if a.stuck = a.stuck || a.count >= limit; a.stuck {
		a.resting = now.Add(min(a.pauses.Step(), longest))
	}
	return a
}

// of returns the attempts of the step so far.
func (s Steps) of(step lifecycle.Step) attempts {
	if i := s.place(step); i >= 0 {
		return s.tried[i]
	}
	return attempts{step: step, pauses: pauses}
}

func (s Steps) place(step lifecycle.Step) int {
	return slices.IndexFunc(s.tried, func(a attempts) bool { return a.step.Same(step) })
}

func (s Steps) with(a attempts) Steps {
	s.tried = slices.Clone(s.tried)
	if i := s.place(a.step); i >= 0 {
		s.tried[i] = a
	} else {
		s.tried = append(s.tried, a)
	}
	return s
}

// Why returns what is to be said about the step; it is not set if the step is not stuck, or not
// for long.
func (s Steps) Why(step lifecycle.Step) lifecycle.Decision {
	if a := s.of(step); a.stuck {
		return a.said
	}
	return lifecycle.Decision{}
}

// Rests reports whether the step is stuck and its next attempt is later.
func (s Steps) Rests(step lifecycle.Step, now time.Time) bool {
	a := s.of(step)
	return a.stuck && now.Before(a.resting)
}

// Due returns the time of the next attempt of a step that rests; zero if none does.
func (s Steps) Due(now time.Time) (next time.Time) {
	for _, a := range s.tried {
		if a.stuck && now.Before(a.resting) && (next.IsZero() || a.resting.Before(next)) {
			next = a.resting
		}
	}
	return next
}
