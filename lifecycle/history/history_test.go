package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

func entry(i int) history.Entry {
	return history.Entry{
		At:   time.Unix(int64(i), 0).UTC(),
		Step: lifecycle.Step{Name: "Add", Target: fmt.Sprint(i)}, Result: history.Succeeded,
	}
}

func book(n int) history.Book {
	var b history.Book
	for i := range n {
		b = b.Append(entry(i))
	}
	return b
}

func TestBookIsBoundedAndChained(t *testing.T) {
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
	cases := map[string]func(b *history.Book){
		"Changed": func(b *history.Book) { b.Entries[1].Message = "nothing happened" },
		"Removed": func(b *history.Book) { b.Entries = append(b.Entries[:1], b.Entries[2:]...) },
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
	if diff := cmp.Diff(b, got); diff != "" {
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
