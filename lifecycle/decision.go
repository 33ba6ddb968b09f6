package lifecycle

import (
	"fmt"
	"slices"
	"time"
)

// Outcome is the kind of a decision.
type Outcome string

const (
	// OutcomeNone is the zero outcome: the rule does not apply.
	OutcomeNone Outcome = ""
	// OutcomeProceed means that the engine takes Step now.
	OutcomeProceed Outcome = "Proceed"
	// OutcomeWait means that the world changes by itself, and a watch reports it.
	OutcomeWait Outcome = "Wait"
	// OutcomeBlocked means that a person or another system must act first.
	OutcomeBlocked Outcome = "Blocked"
	// OutcomeRetry means that the engine tries the same reconcile again soon.
	OutcomeRetry Outcome = "Retry"
	// OutcomeSettled means that the world is as declared.
	OutcomeSettled Outcome = "Settled"
)

// Decision is the result of [Planner.Next], and the only source of the log line, the
// event, the conditions, the history entry and the requeue of one reconcile.
type Decision struct {
	// Outcome is the kind of the decision. It determines which other fields apply.
	Outcome Outcome

	// Reason is a CamelCase fact, e.g. LearnerCatchingUp. It becomes the reason of conditions
	// and events, so it is part of the user's interface.
	Reason string

	// Message is a sentence for the user: the state, the reason and, when Blocked, what the
	// user can do. It contains no clock reading and no counter that changes by itself.
	Message string

	// Failed marks a Blocked decision because the last change of the spec does not work. If a
	// policy says so, the engine restores the last spec that worked.
	Failed bool

	// Suspect marks a Blocked or Waiting decision whose cause may be the last change of the
	// spec, which the world alone does not show. The engine takes the change as failed if the
	// object was never settled with the present spec.
	Suspect bool

	// Step is what to do (Proceed) or what to wait for (Wait).
	Step Step

	// Since is when a wait began, as observed in the world; zero if unknown.
	Since time.Time

	// Deadline is when a wait has failed; zero if it has no deadline. The engine reconciles
	// at that time.
	Deadline time.Time

	// After is the time until the next reconcile (Retry, and the heartbeat of other
	// outcomes); zero leaves it to the engine.
	After time.Duration

	// Behind are the decisions of the rules after the one that wants Step, up to the first
	// that wants no step. [First] sets it. A repair behind the step goes on while policies hold
	// the step's change ([Decision.Instead]), or while the step fails ([Decision.Past]).
	Behind []Decision

	// Drift is what Step repairs, if the application serves and keeps its data as well without
	// the step. While the drift policy is Report, the engine reports it, and takes the decision
	// of the later rules. Nil means that the step is taken in any case.
	Drift *Drift
}

// Drift is a change of an object of the operator by another user or controller.
type Drift struct {
	// Kind and Name are those of the object.
	Kind, Name string
	// Fields are those that were changed.
	Fields []string
}

// IsSet reports whether the rule applies.
func (d Decision) IsSet() bool { return d.Outcome != OutcomeNone }

// IsRepair reports whether the decision is part of a repair.
func (d Decision) IsRepair() bool { return d.IsSet() && d.Step.Intent == IntentRepair }

// String is the decision as a log line.
func (d Decision) String() string {
	if d.Step.Name == "" {
		return fmt.Sprintf("%s %s: %s", d.Outcome, d.Reason, d.Message)
	}
	return fmt.Sprintf("%s %s (%s): %s", d.Outcome, d.Step, d.Reason, d.Message)
}

// Heartbeat returns the decision with another reconcile after the given time, or sooner if
// it asks for that. It serves applications whose health cannot be watched.
func (d Decision) Heartbeat(after time.Duration) Decision {
	if d.After == 0 || after < d.After {
		d.After = after
	}
	return d
}

// Proceed decides to take the step. The reason is that of the step.
func Proceed(step Step) Decision {
	return Decision{Outcome: OutcomeProceed, Reason: step.Reason, Message: step.Message, Step: step}
}

// WaitFor decides to wait for what the step names, since the given time. The time is zero
// if the beginning is not known.
func WaitFor(step Step, since time.Time) Decision {
	return Decision{Outcome: OutcomeWait, Reason: step.Reason, Message: step.Message, Step: step, Since: since}
}

// Until returns the decision with a deadline for its wait.
func (d Decision) Until(deadline time.Time) Decision {
	d.Deadline = deadline
	return d
}

// Block decides that a person or another system must act first. The message must say what
// to do.
func Block(reason, message string) Decision {
	return Decision{Outcome: OutcomeBlocked, Reason: reason, Message: message}
}

// Fail decides that the last change of the spec has begun and does not work, e.g. because
// an image never starts. The engine changes nothing more for it, and the message must say
// what to do. It does not serve for a fault of the world, which an earlier spec would not
// repair.
func Fail(reason, message string) Decision {
	d := Block(reason, message)
	d.Failed = true
	return d
}

// RetryIn decides to reconcile again after the given time.
func RetryIn(after time.Duration, reason, message string) Decision {
	return Decision{Outcome: OutcomeRetry, Reason: reason, Message: message, After: after}
}

// Settled decides that the world is as declared.
func Settled(reason, message string) Decision {
	return Decision{Outcome: OutcomeSettled, Reason: reason, Message: message}
}

// First returns the first decision that is set, or Settled if none is. A step carries the
// decisions of the later rules in Behind.
func First(rules ...Decision) Decision {
	if d := Any(rules...); d.IsSet() {
		return d
	}
	return Settled("AsDeclared", "Everything is as declared.")
}

// Any is First for one rule with several decisions, such as one for each member: the result is
// not set if none of them is.
func Any(decisions ...Decision) Decision {
	for i, d := range decisions {
		if d.IsSet() {
			return d.before(decisions[i+1:])
		}
	}
	return Decision{}
}

// before returns the decision with those of the later rules in Behind, after those that its own
// rule has set.
func (d Decision) before(rules []Decision) Decision {
	if d.Outcome != OutcomeProceed {
		return d
	}
	behind := slices.Clone(d.Behind)
	for _, next := range rules {
		if n := len(behind); n > 0 && behind[n-1].Outcome != OutcomeProceed {
			break // a later rule is not safe before this wait or block ends
		}
		if next.IsSet() {
			line := next.Behind
			next.Behind = nil
			behind = append(append(behind, next), line...)
		}
	}
	d.Behind = behind
	return d
}

func (d Decision) sparesDrift() bool { return d.Outcome == OutcomeProceed && d.Drift != nil }

// SpareDrift returns the decision without repairs of drift that may stay, and that drift.
func (d Decision) SpareDrift() (_ Decision, spared []Drift) {
	for d.sparesDrift() {
		spared, d = append(spared, *d.Drift), First(d.Behind...)
	}
	return d.withoutBehind(Decision.sparesDrift), spared
}

func (d Decision) withoutBehind(these func(Decision) bool) Decision {
	d.Behind = slices.DeleteFunc(slices.Clone(d.Behind), these)
	return d
}

// Instead returns the decision that goes on while policies hold the decision's change: the
// first repair behind it. A change counts as a repair if needed reports that it restores
// what the world lost; nil means that none does. If a wait comes first, the result is that
// wait. The result is not set if nothing goes on. What holds a repair holds the later ones, too.
func (d Decision) Instead(needed func(Step) bool) Decision {
	if d.IsRepair() {
		return Decision{}
	}
	return d.repairBehind(needed)
}

func (d Decision) repairBehind(needed func(Step) bool) Decision {
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

// Past returns the decision that goes on while steps are stuck: they fail, or have no effect. It
// is the decision itself, unless its own step is stuck. Then it is the first repair behind it,
// with needed and a wait as for [Decision.Instead], or not set if nothing goes on.
//
// A later rule may count on what an earlier one has done, so the stuck step limits what follows:
//   - No change goes on, except one that is needed, and that only past stuck repairs. Past a stuck
//     change it could begin before another has ended.
//   - No irreversible repair goes on: a person has to look at the object anyway.
//   - Nothing goes past a wait or a block, as in the order of the rules.
//   - Other repairs go on, also destructive ones such as the removal of a dead member. The rules are
//     in the order of urgency, and each makes sense in every world, so also in one where the stuck
//     step has failed. Gates judge the present world, without the stuck step's effect.
func (d Decision) Past(stuck, needed func(Step) bool) Decision {
	isStuck := func(d Decision) bool { return d.Outcome == OutcomeProceed && stuck(d.Step) }
	first, begun := isStuck(d), isStuck(d) && !d.IsRepair()
	d = d.withoutBehind(func(next Decision) bool {
		if isStuck(next) {
			begun = begun || !next.IsRepair()
			return true
		}
		another := begun && !next.IsRepair() || first && next.Step.Class == ClassIrreversible
		return another && next.Outcome == OutcomeProceed
	})
	if !first {
		return d
	}
	return d.repairBehind(needed)
}

// Wants reports whether the decision, or one behind it, is to take the step.
func (d Decision) Wants(step Step) bool {
	wants := func(d Decision) bool { return d.Outcome == OutcomeProceed && d.Step.Same(step) }
	return wants(d) || slices.ContainsFunc(d.Behind, wants)
}
