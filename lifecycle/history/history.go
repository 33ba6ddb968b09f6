// Package history is the record of what the operator did to an object, and of
// what it refused to do: value types, a bounded append and its reading.
//
// A [Log] belongs to one object. Its entries are chained: each carries the digest
// of the one before it, so an entry that was changed or taken out later shows.
package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// Limit is how many entries a book keeps; older ones fall off.
const Limit = 50

// Key is where a ConfigMap keeps a book.
const Key = "book.json"

// Name is the name of the ConfigMap that keeps the book of an object.
func Name(kind, object string) string {
	return object + "." + strings.ToLower(kind) + "-history"
}

// Result is how a step ended.
type Result string

const (
	// Succeeded means that Act returned without an error.
	Succeeded Result = "Succeeded"
	// Failed means that Act returned an error.
	Failed Result = "Failed"
	// Refused means that a gate held the step.
	Refused Result = "Refused"
)

// Entry is one step, or one refusal of a step.
type Entry struct {
	// At is when the step began.
	At time.Time `json:"at"`
	// Last is when a step that failed was tried again the last time, as far as that was
	// noted: see [Book.RecordRetry]. It is zero if it was tried once.
	Last time.Time `json:"last,omitzero"`
	// Generation is the object's generation that the step served.
	Generation int64 `json:"generation"`
	// Step is what was done.
	Step lifecycle.Step `json:"step"`
	// Result is how it ended.
	Result Result `json:"result"`
	// Message is the error or the gate's objection.
	Message string `json:"message,omitempty"`
	// By is the field manager that set the spec of that generation, as the API server
	// has it; empty if it is not known, or if no change of the spec set the step off. A field that was only taken away is recorded
	// there in nobody's name, and then it is who set one last.
	By string `json:"by,omitempty"`
	// Evidence is what the decision was made on, in the application's words.
	Evidence []string `json:"evidence,omitempty"`
	// Gates are all that were asked, with their answers.
	Gates []GateResult `json:"gates,omitempty"`
	// Policies are the names of those that select the object, and so were asked.
	Policies []string `json:"policies,omitempty"`
	// Duration is how long Act took.
	Duration time.Duration `json:"duration"`
	// Awaited is what was waited for after the step, before the next decision that
	// was none to wait.
	Awaited []WaitRecord `json:"awaited,omitempty"`
	// HeldBy names the gates that refused it, e.g. "weekends/MaintenanceWindow" for a
	// gate of the policy "weekends".
	HeldBy string `json:"heldBy,omitempty"`
	// Approval is what let the step pass, if it needed one.
	Approval *Approval `json:"approval,omitempty"`
	// Bypass is what let it pass the policies that would have held it.
	Bypass *Bypass `json:"bypass,omitempty"`
	// Operator is the version of the operator that did it.
	Operator string `json:"operator"`
	// Previous is the digest of the entry before this one.
	Previous string `json:"previous"`

	// raw is the entry as it was stored, which a later operator may not know whole.
	raw json.RawMessage
}

// GateResult is what a gate said of a step.
type GateResult struct {
	// Gate is its name.
	Gate string `json:"gate"`
	// Objection is why it held the step; empty if it let it pass.
	Objection string `json:"objection,omitempty"`
}

// Approval is somebody's word that a step may be taken.
type Approval struct {
	// Name is that of the Approval, in the namespace of the object.
	Name string `json:"name"`
	// By is the user who gave it, whom the API server knew.
	By string `json:"by"`
	// Reason is theirs.
	Reason string `json:"reason,omitempty"`
}

// Bypass is somebody's word that policies do not count for now.
type Bypass struct {
	// Policies are those that would have held the step.
	Policies []string `json:"policies"`
	// Reason is what was given for it.
	Reason string `json:"reason"`
	// By is the user who gave the reason, or else the field manager that wrote it; empty if
	// neither is known.
	By string `json:"by,omitempty"`
}

// WaitRecord is one thing that was waited for, and came.
type WaitRecord struct {
	// Step names it, as the wait did.
	Step lifecycle.Step `json:"step"`
	// Duration is how long it took.
	Duration time.Duration `json:"duration"`
}

// Log is the bounded history of one object, oldest entry first.
type Log struct {
	// Entries are in the order in which they happened.
	Entries []Entry `json:"entries"`
}

// Append adds the entry, chained to the last one, and drops what is beyond Limit.
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

// Repeats reports whether the entry says again what the newest one said. A
// refusal is recorded once, however often it is asked for.
func (b Log) Repeats(e Entry) bool {
	last, ok := b.Last()
	same := last.Message == e.Message
	if e.HeldBy != "" {
		same = last.HeldBy == e.HeldBy // what they say may go with the world
	}
	return ok && same && last.Result == e.Result && last.Generation == e.Generation && last.Step.Same(e.Step)
}

// RecordRetry takes in a step that has failed as the newest entry says that it has before, and
// reports whether it is such a step. It is no entry of its own, or a quota that is used up
// for a night would leave nothing else in the book. That it was tried last then, and the
// error, are noted ever more seldom: when so much time has passed as from the first time
// to the last that was noted, and no sooner than after a minute. Else the book is as it was.
func (b Log) RecordRetry(e Entry) (_ Log, noted, again bool) {
	last, ok := b.Last()
	again = ok && e.Result == Failed && last.Result == Failed && last.Generation == e.Generation && last.Step.Same(e.Step)
	if !again || e.At.Sub(last.Latest()) < max(time.Minute, last.Latest().Sub(last.At)) {
		return b, false, again
	}
	last.Last, last.Message, last.raw = e.At, e.Message, nil
	return b.amended(last), true, true
}

// Latest is when the step was tried last, as far as that was noted.
func (e Entry) Latest() time.Time {
	if e.Last.IsZero() {
		return e.At
	}
	return e.Last
}

// amended is the book with another newest entry. No later one vouches for it yet, so the
// chain stays whole.
func (b Log) amended(last Entry) Log {
	return Log{Entries: append(slices.Clone(b.Entries[:len(b.Entries)-1]), last)}
}

// Verify returns an error that names the first entry whose predecessor is not the
// one it was written after. The oldest entry's predecessor may have fallen off.
func (b Log) Verify() error {
	for i := 1; i < len(b.Entries); i++ {
		if !b.Entries[i].follows(b.Entries[i-1]) {
			return fmt.Errorf("history entry %d (%s) does not follow the entry before it: it was changed afterwards",
				i, b.Entries[i].Step)
		}
	}
	return nil
}

// Waited returns the book with what was waited for after its last step.
func (b Log) Waited(awaits []WaitRecord) Log {
	last, ok := b.Last()
	if !ok || len(awaits) == 0 {
		return b
	}
	last.Awaited, last.raw = slices.Concat(last.Awaited, awaits), nil
	return b.amended(last)
}

// MedianDuration returns the median of how long what is so called took in this book, a step
// that was done or an event that was awaited, and false if it never happened.
func (b Log) MedianDuration(name string) (time.Duration, bool) {
	var all []time.Duration
	for _, e := range b.Entries {
		if e.Step.Name == name && e.Result == Succeeded {
			all = append(all, e.Duration)
		}
		for _, a := range e.Awaited {
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

// Encode returns the book as JSON.
func (b Log) Encode() (string, error) {
	raw, err := json.Marshal(b)
	return string(raw), err
}

// Decode reads a book from JSON; the empty string is the empty book.
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
