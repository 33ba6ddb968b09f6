package publish

import (
	"slices"
	"strings"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// joinRefusals are the gates that refuse, and all that they say.
func joinRefusals(refusals []lifecycle.Refusal) (gates, said string) {
	var names, sentences []string
	for _, r := range refusals {
		name := gateName(r)
		names, sentences = append(names, name), append(sentences, name+": "+r.Message)
	}
	return strings.Join(names, ", "), strings.Join(sentences, "; ")
}

// gateName is the gate's name, after that of the policy that it is of.
func gateName(r lifecycle.Refusal) string {
	if r.Policy != "" {
		return r.Policy + "/" + r.Gate
	}
	return r.Gate
}

// Entry is the part of the engine's entry that follows from the result. gates are the names of
// the application's gates, in their order.
func (r *Result) Entry(gates []string) *history.Entry {
	entry := &history.Entry{At: r.Began, Generation: r.Object.GetGeneration(), Result: history.ResultRefused}
	switch {
	case r.Taken != nil:
		entry.At, entry.Step, entry.Duration, entry.Result = r.Taken.Began, r.Taken.Step, r.Taken.Took, history.ResultSucceeded
		entry.Approval, entry.Bypass = r.Approval, r.Bypass
		if r.Taken.Err != nil {
			entry.Result, entry.Message = history.ResultFailed, r.Taken.Err.Error()
		}
	case len(r.Refusals) > 0:
		entry.Step = r.Decision.Step
		entry.HeldBy, entry.Message = joinRefusals(r.Refusals)
	case r.newlyHeld():
		entry.Step = r.Held.Step
		entry.HeldBy, entry.Message = joinRefusals(r.Held.Refusals)
	default:
		return nil
	}
	entry.By = r.changedBy(entry.Step)
	if r.judged() {
		entry.Gates = r.gateResults(gates, entry.Step)
	}
	return entry
}

// judged reports whether gates judged the step. They do not judge the engine's own steps.
func (r *Result) judged() bool {
	return r.Taken != nil && !r.Taken.Own || r.Taken == nil && len(r.Refusals) > 0
}

// changedBy returns the author of the change that the step carries out. It is empty for a step
// with another known cause than a change of the spec. Not every application names causes.
func (r *Result) changedBy(step lifecycle.Step) string {
	if step.Cause == "" || step.Cause == lifecycle.CauseSpecChange || r.Taken != nil && r.Taken.Own {
		return r.Author
	}
	return ""
}

// gateResults returns what each gate said of the step: the application's gates in their order,
// then those of policies.
func (r *Result) gateResults(names []string, step lifecycle.Step) []history.GateResult {
	if budget.TakesSlot(r.Object, step) && len(r.Refusals) == 0 { // else it was not asked, or objects itself
		names = append(slices.Clip(names), budget.FleetBudget)
	}
	var all []history.GateResult
	for _, name := range names {
		all = append(all, history.GateResult{Gate: name, Objection: messageOf(r.Refusals, name)})
	}
	for _, refusal := range r.Refusals {
		if !slices.Contains(names, gateName(refusal)) {
			all = append(all, history.GateResult{Gate: gateName(refusal), Objection: refusal.Message})
		}
	}
	return all
}

func messageOf(refusals []lifecycle.Refusal, gate string) string {
	for _, r := range refusals {
		if gateName(r) == gate {
			return r.Message
		}
	}
	return ""
}
