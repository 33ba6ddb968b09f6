// Package history records the steps that the operator took or refused for an object:
// value types, a bounded append and its decoding.
//
// A [Log] belongs to one object. Its entries are chained: each has the digest of the
// entry before it, so a modified or removed entry is detected.
package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// Limit is how many entries a log keeps; older ones are dropped.
const Limit = 50

// Key is the key of the log in its ConfigMap.
const Key = "history.json"

// Name returns the name of the ConfigMap with the log of an object.
func Name(kind, object string) string {
	return object + "." + strings.ToLower(kind) + "-history"
}

// Result is how a step ended.
type Result string

const (
	// ResultSucceeded means that Act returned without an error.
	ResultSucceeded Result = "Succeeded"
	// ResultFailed means that Act returned an error.
	ResultFailed Result = "Failed"
	// ResultRefused means that a gate held the step.
	ResultRefused Result = "Refused"
)

// Entry is one step, or one refusal of a step.
type Entry struct {
	// At is when the step began.
	At time.Time `json:"at"`
	// Last is the last recorded retry of a failed step: see [Log.RecordRetry]. It is zero
	// if the step was tried once.
	Last time.Time `json:"last,omitzero"`
	// Generation is the object's generation at the time of the step.
	Generation int64 `json:"generation"`
	// Step is the step.
	Step lifecycle.Step `json:"step"`
	// Result is how the step ended.
	Result Result `json:"result"`
	// Message is the error or the gate's objection.
	Message string `json:"message,omitempty"`
	// By is the field manager that set the spec of that generation, from the API server. It is
	// empty if unknown, or if no change of the spec caused the step. The API server records no
	// manager for a removed field; then By is the manager that last set a field.
	By string `json:"by,omitempty"`
	// Evidence are the application's observations behind the decision.
	Evidence []string `json:"evidence,omitempty"`
	// Gates are all evaluated gates with their results.
	Gates []GateResult `json:"gates,omitempty"`
	// Policies are the names of the policies that select the object.
	Policies []string `json:"policies,omitempty"`
	// Duration is how long Act took.
	Duration time.Duration `json:"duration"`
	// Waits are the waits after the step, before the next decision that is not a wait.
	Waits []WaitRecord `json:"waits,omitempty"`
	// HeldBy names the gates that refused the step, e.g. "weekends/MaintenanceWindow" for a
	// gate of the policy "weekends".
	HeldBy string `json:"heldBy,omitempty"`
	// Approval permitted the step; nil if it needed none.
	Approval *Approval `json:"approval,omitempty"`
	// Bypass let the step pass the policies that would have held it; nil without a bypass.
	Bypass *Bypass `json:"bypass,omitempty"`
	// Operator is the version of the operator.
	Operator string `json:"operator"`
	// Previous is the digest of the entry before this one.
	Previous string `json:"previous"`

	// raw is the stored entry, which may have fields that this operator does not know.
	raw json.RawMessage
}

// GateResult is the result of a gate for a step.
type GateResult struct {
	// Gate is the name of the gate.
	Gate string `json:"gate"`
	// Objection is why the gate held the step; empty if the step passed.
	Objection string `json:"objection,omitempty"`
}

// Approval is a user's permission for a step.
type Approval struct {
	// Name is the name of the Approval, in the namespace of the object.
	Name string `json:"name"`
	// By is the user who approved, as authenticated by the API server.
	By string `json:"by"`
	// Reason is the user's reason.
	Reason string `json:"reason,omitempty"`
}

// Bypass is a user's decision to ignore policies.
type Bypass struct {
	// Policies are those that would have held the step.
	Policies []string `json:"policies"`
	// Reason is the user's reason.
	Reason string `json:"reason"`
	// By is the user who gave the reason, or else the field manager that wrote it; empty if
	// neither is known.
	By string `json:"by,omitempty"`
}

// WaitRecord is a wait that ended successfully.
type WaitRecord struct {
	// Step is the name of the wait.
	Step lifecycle.Step `json:"step"`
	// Duration is how long the wait took.
	Duration time.Duration `json:"duration"`
}

// Log is the bounded history of one object, oldest entry first.
type Log struct {
	// Entries are in chronological order.
	Entries []Entry `json:"entries"`
}

// Append adds the entry, chained to the last one, and drops entries beyond Limit.
func (b Log) Append(e Entry) Log {
	if last, ok := b.Last(); ok {
		e.Previous = digest(last.stored())
	}
	kept := b.Entries
	if len(kept) >= Limit {
		kept = kept[len(kept)-Limit+1:]
	}
	return Log{Entries: append(append([]Entry{}, kept...), e)}
}

// Last returns the newest entry.
func (b Log) Last() (Entry, bool) {
	if len(b.Entries) == 0 {
		return Entry{}, false
	}
	return b.Entries[len(b.Entries)-1], true
}

// Repeats reports whether the entry repeats the newest one. A repeated refusal is recorded
// once.
func (b Log) Repeats(e Entry) bool {
	last, ok := b.Last()
	same := last.Message == e.Message
	if e.HeldBy != "" {
		same = last.HeldBy == e.HeldBy // their messages may change with the world
	}
	return ok && same && last.Result == e.Result && last.Generation == e.Generation && last.Step.Same(e.Step)
}

// RecordRetry records a step that failed again after the failure of the newest entry, and
// reports whether it is such a step. A retry is not a new entry; otherwise a quota that is
// used up for a night would fill the log. The time and error of retries are recorded with
// exponential backoff: when as much time has passed as between the first failure and the
// last recorded one, and at least a minute. Otherwise the log does not change.
func (b Log) RecordRetry(e Entry) (_ Log, noted, again bool) {
	last, ok := b.Last()
	again = ok && e.Result == ResultFailed && last.Result == ResultFailed && last.Generation == e.Generation && last.Step.Same(e.Step)
	if !again || e.At.Sub(last.Latest()) < max(time.Minute, last.Latest().Sub(last.At)) {
		return b, false, again
	}
	last.Last, last.Message, last.raw = e.At, e.Message, nil
	return b.amended(last), true, true
}

// Latest returns the last recorded time of the step.
func (e Entry) Latest() time.Time {
	if e.Last.IsZero() {
		return e.At
	}
	return e.Last
}

// amended replaces the newest entry. No later entry has its digest yet, so the chain stays
// valid.
func (b Log) amended(last Entry) Log {
	return Log{Entries: append(slices.Clone(b.Entries[:len(b.Entries)-1]), last)}
}

// Verify returns an error that names the first entry whose digest does not match its
// predecessor. The predecessor of the oldest entry may have been dropped.
func (b Log) Verify() error {
	for i := 1; i < len(b.Entries); i++ {
		if !b.Entries[i].follows(b.Entries[i-1]) {
			return fmt.Errorf("history entry %d (%s) does not follow the entry before it: it was changed afterwards",
				i, b.Entries[i].Step)
		}
	}
	return nil
}

// Waited adds the waits to the last step.
func (b Log) Waited(awaits []WaitRecord) Log {
	last, ok := b.Last()
	if !ok || len(awaits) == 0 {
		return b
	}
	last.Waits, last.raw = slices.Concat(last.Waits, awaits), nil
	return b.amended(last)
}

// MedianDuration returns the median duration of the steps or waits with the name, and false
// if there are none.
func (b Log) MedianDuration(name string) (time.Duration, bool) {
	var all []time.Duration
	for _, e := range b.Entries {
		if e.Step.Name == name && e.Result == ResultSucceeded {
			all = append(all, e.Duration)
		}
		for _, a := range e.Waits {
			if a.Step.Name == name {
				all = append(all, a.Duration)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)/2], true
}

// Encode returns the log as JSON.
func (b Log) Encode() (string, error) {
	raw, err := json.Marshal(b)
	return string(raw), err
}

// Decode reads a log from JSON; the empty string is the empty log.
func Decode(raw string) (Log, error) {
	var b Log
	if raw == "" {
		return b, nil
	}
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		return Log{}, fmt.Errorf("cannot read history: %w", err)
	}
	return b, nil
}
