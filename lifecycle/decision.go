package lifecycle

import (
	"fmt"
	"time"
)

// Outcome is what a decision amounts to.
type Outcome string

const (
	// OutcomeNone is the zero outcome: a rule that has nothing to say.
	OutcomeNone Outcome = ""
	// OutcomeProceed means that Step is to be taken now.
	OutcomeProceed Outcome = "Proceed"
	// OutcomeWait means that the world is on its way and will wake us.
	OutcomeWait Outcome = "Wait"
	// OutcomeBlocked means that nothing improves before someone else acts.
	OutcomeBlocked Outcome = "Blocked"
	// OutcomeRetry means that the same turn is worth trying again soon.
	OutcomeRetry Outcome = "Retry"
	// OutcomeSettled means that everything is as declared.
	OutcomeSettled Outcome = "Settled"
)

// Decision is the result of one turn's judgement, and the single source of the
// log line, the event, the conditions, the history entry and the requeue.
type Decision struct {
	// Outcome says which of the other fields have a meaning.
	Outcome Outcome

	// Reason is a CamelCase fact, e.g. LearnerCatchingUp. It becomes the reason of
	// conditions and events, so it is part of the user's interface.
	Reason string

	// Message is a sentence for the user: the state, the reason and, when Blocked,
	// the next step. It has no clock readings or counters that move by themselves.
	Message string

	// Failed says of Blocked that what the user declared last does not work: where a
	// declared policy says so, the last spec that worked is put back.
	Failed bool

	// Suspect says of Blocked and Waiting that what the user declared last may be why it does
	// not work, which the world alone does not show. The engine knows the past: it takes the
	// change as failed if nothing was ever as the present spec declares.
	Suspect bool

	// Step is what to do (Proceeding) or what is awaited (Waiting).
	Step Step

	// Since is when a Wait began, as observed in the world; zero if unknown.
	Since time.Time

	// Deadline is when a Wait has gone badly; zero if it has none. The engine runs
	// a turn then.
	Deadline time.Time

	// After is how long to leave the object alone before looking again (Retrying,
	// and the heartbeat of other outcomes); zero leaves it to the engine.
	After time.Duration

	// Behind is what the rules after the one that wants Step say, up to the first that wants
	// no step. First sets it for a wish. While policies hold the wish, a repair behind it goes on.
	Behind []Decision
}

// IsSet reports whether the decision says anything.
func (d Decision) IsSet() bool { return d.Outcome != OutcomeNone }

// IsRepair reports whether the decision is about mending what was broken.
func (d Decision) IsRepair() bool { return d.IsSet() && d.Step.Intent == IntentRepair }

// String is the decision as a log line.
func (d Decision) String() string {
	if d.Step.Name == "" {
		return fmt.Sprintf("%s %s: %s", d.Outcome, d.Reason, d.Message)
	}
	return fmt.Sprintf("%s %s (%s): %s", d.Outcome, d.Step, d.Reason, d.Message)
}

// Heartbeat returns the decision with another look after the given time, or sooner
// if it says so already; for applications whose health cannot be watched.
func (d Decision) Heartbeat(after time.Duration) Decision {
	if d.After == 0 || after < d.After {
		d.After = after
	}
	return d
}

// Proceed decides to take the step, for the reason the step gives.
func Proceed(step Step) Decision {
	return Decision{Outcome: OutcomeProceed, Reason: step.Reason, Message: step.Message, Step: step}
}

// WaitFor decides to wait for what the step names, since the given time. The
// zero time is allowed when the beginning is not known.
func WaitFor(step Step, since time.Time) Decision {
	return Decision{Outcome: OutcomeWait, Reason: step.Reason, Message: step.Message, Step: step, Since: since}
}

// Until returns the decision with a deadline for its wait.
func (d Decision) Until(deadline time.Time) Decision {
	d.Deadline = deadline
	return d
}

// Block decides that a person or another system has to act first. The message
// must say what to do.
func Block(reason, message string) Decision {
	return Decision{Outcome: OutcomeBlocked, Reason: reason, Message: message}
}

// Fail decides that a change has failed: what was declared last was begun and does not
// work, e.g. an image that never starts. Nothing more is changed for it, and the message
// must say what to do. It is no word for a fault of the world, which a return to an
// earlier spec would not mend.
func Fail(reason, message string) Decision {
	d := Block(reason, message)
	d.Failed = true
	return d
}

// RetryIn decides to look again after the given time.
func RetryIn(after time.Duration, reason, message string) Decision {
	return Decision{Outcome: OutcomeRetry, Reason: reason, Message: message, After: after}
}

// Settled decides that everything is as declared.
func Settled(reason, message string) Decision {
	return Decision{Outcome: OutcomeSettled, Reason: reason, Message: message}
}

// First returns the first decision that speaks, or Settled if none does. Behind a wish it
// has what the later rules say.
func First(rules ...Decision) Decision {
	for i, d := range rules {
		if d.IsSet() {
			return d.before(rules[i+1:])
		}
	}
	return Settled("AsDeclared", "Everything is as declared.")
}

func (d Decision) before(rules []Decision) Decision {
	if d.Outcome != OutcomeProceed || d.Step.Intent == IntentRepair {
		return d
	}
	for _, next := range rules {
		if !next.IsSet() {
			continue
		}
		next.Behind = nil
		if d.Behind = append(d.Behind, next); next.Outcome != OutcomeProceed {
			break // what comes after a wait or a block is not safe before it ends
		}
	}
	return d
}

// Instead returns what goes on while policies hold the decision's wish: the first repair
// behind it. A wish counts as one if needed reports that it brings back what the world
// lost; nil means that none does. If a wait comes first, the result is that wait. It says
// nothing if nothing goes on.
func (d Decision) Instead(needed func(Step) bool) Decision {
	for _, next := range d.Behind {
		switch {
		case next.Outcome == OutcomeWait:
			return next
		case next.Outcome != OutcomeProceed:
			return Decision{}
		case next.Step.Intent == IntentRepair, needed != nil && needed(next.Step):
			return next
		}
	}
	return Decision{}
}
