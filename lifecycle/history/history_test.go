package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

func entry(i int) history.Entry {
	return history.Entry{
		At:   time.Unix(int64(i), 0).UTC(),
		Step: lifecycle.Step{Name: "Add", Target: fmt.Sprint(i)}, Result: history.ResultSucceeded,
	}
}

func book(n int) history.Log {
	var b history.Log
	for i := range n {
		b = b.Append(entry(i))
	}
	return b
}

func TestLogIsBoundedAndChained(t *testing.T) {
	b := book(history.Limit + 5)
	if len(b.Entries) != history.Limit {
		t.Errorf("got %d entries, want %d", len(b.Entries), history.Limit)
	}
	if err := b.Verify(); err != nil {
		t.Errorf("entries that fell off must not break the chain: %v", err)
	}
	if b.Entries[0].Step.Target != "5" {
		t.Errorf("the oldest entries fall off first, got %s", b.Entries[0].Step)
	}
}

func TestVerifyShowsTampering(t *testing.T) {
	cases := map[string]func(b *history.Log){
		"Changed": func(b *history.Log) { b.Entries[1].Message = "nothing happened" },
		"Removed": func(b *history.Log) { b.Entries = append(b.Entries[:1], b.Entries[2:]...) },
	}
	for name, tamper := range cases {
		t.Run(name, func(t *testing.T) {
			b := book(4)
			tamper(&b)
			if b.Verify() == nil {
				t.Error("the change was not noticed")
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	b := book(3)
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := history.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, got, cmpopts.IgnoreUnexported(history.Entry{})); diff != "" {
		t.Error(diff)
	}
	if _, err := history.Decode("{"); err == nil {
		t.Error("broken JSON must be an error")
	}
}

func TestRepeats(t *testing.T) {
	b := book(1)
	if !b.Repeats(entry(0)) || b.Repeats(entry(1)) {
		t.Error("only the same step with the same result repeats")
	}
}

func awaited(name string, d time.Duration) []history.WaitRecord {
	return []history.WaitRecord{{Step: lifecycle.Step{Name: name}, Duration: d}}
}

func TestWaitsBelongToTheStepBefore(t *testing.T) {
	b := book(1).Waited(awaited("Ready", 2)).Waited(awaited("Up", 3)).Append(entry(1))
	if err := b.Verify(); err != nil {
		t.Error(err)
	}
	if n := len(b.Entries[0].Waits); n != 2 || len(b.Entries[1].Waits) != 0 {
		t.Errorf("the first step waited %d times", n)
	}
	b.Entries[0].Waits[0].Duration++
	if b.Verify() == nil {
		t.Error("a measure that is changed later must show")
	}
	if empty := (history.Log{}).Waited(awaited("Ready", 1)); len(empty.Entries) != 0 {
		t.Errorf("without a step there is nothing to belong to: %v", empty)
	}
}

func TestMedianDuration(t *testing.T) {
	b := history.Log{}
	for i, d := range []time.Duration{9, 1, 5} {
		e := entry(i)
		e.Duration = d
		b = b.Append(e).Waited(awaited("Ready", 10*d))
	}
	failed := entry(3)
	failed.Result, failed.Duration = history.ResultFailed, 1000
	b = b.Append(failed)
	cases := map[string]struct {
		reason string
		want   time.Duration
		known  bool
	}{
		"Add":     {"the median of what succeeded", 5, true},
		"Ready":   {"and of what was awaited", 50, true},
		"Promote": {"what never happened has none", 0, false},
	}
	for name, c := range cases {
		if got, known := b.MedianDuration(name); got != c.want || known != c.known {
			t.Errorf("%s: %s: got %v %v", name, c.reason, got, known)
		}
	}
}

// A step that fails for a night is one entry, and is written less and less often.
func TestRetriesAreRecordedWithBackoff(t *testing.T) {
	failed := func(at time.Duration, said string) history.Entry {
		e := entry(0)
		e.At, e.Result, e.Message = e.At.Add(at), history.ResultFailed, said
		return e
	}
	b := book(1).Append(failed(0, "exceeded quota"))
	writes := 0
	for at := 30 * time.Second; at <= 12*time.Hour; at += 30 * time.Second {
		after, noted, again := b.RecordRetry(failed(at, "exceeded quota, used: "+at.String()))
		if !again {
			t.Fatalf("after %s it is taken for another", at)
		}
		if b = after; noted {
			writes++
		}
	}
	last, _ := b.Last()
	if len(b.Entries) != 2 || writes != 10 || last.Last.Sub(last.At) != 512*time.Minute || last.Message != "exceeded quota, used: 8h32m0s" {
		t.Errorf("%d entries, written %d times, last %s: %s", len(b.Entries), writes, last.Last, last.Message)
	}
	if err := b.Append(entry(2)).Verify(); err != nil {
		t.Error(err)
	}
}

func TestOtherStepIsNoRetry(t *testing.T) {
	failed := entry(1)
	failed.Result = history.ResultFailed
	b := book(1).Append(failed)
	other, later, done := failed, failed, failed
	other.Step.Target, later.Generation, done.Result = "2", 7, history.ResultSucceeded
	for reason, e := range map[string]history.Entry{"another target": other, "another generation": later, "it succeeded": done} {
		if _, noted, again := b.RecordRetry(e); noted || again {
			t.Errorf("%s: it is another entry", reason)
		}
	}
	if _, _, again := book(1).RecordRetry(entry(0)); again {
		t.Error("two successes are two entries")
	}
}
