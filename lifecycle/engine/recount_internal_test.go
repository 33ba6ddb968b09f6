package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

func TestPutOff(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	starting := func(message string, edit func(*metav1.Condition)) *fake {
		c := metav1.Condition{Type: lifecycle.Ready, Status: metav1.ConditionFalse, Reason: "PodsStarting", Message: message, ObservedGeneration: 2}
		if edit != nil {
			edit(&c)
		}
		return &fake{conditions: []metav1.Condition{c}}
	}
	waiting := lifecycle.WaitFor(lifecycle.Step{Name: "PodsReady"}, time.Time{})
	cases := map[string]struct {
		reason   string
		decision lifecycle.Decision
		now      *fake
		written  time.Duration // before noon
		want     bool
	}{
		"Numbers":    {"another number can wait", waiting, starting("7 of 9", nil), 400 * time.Millisecond, true},
		"LongAgo":    {"but not for longer than that", waiting, starting("7 of 9", nil), time.Second, false},
		"Never":      {"who has just started tells at once", waiting, starting("7 of 9", nil), 1000 * time.Hour, false},
		"Done":       {"the end is told at once", lifecycle.Settled("AllAvailable", ""), starting("9 of 9", nil), 0, false},
		"Blocked":    {"trouble is told at once", lifecycle.Block("QuotaExceeded", ""), starting("7 of 9", nil), 0, false},
		"Reason":     {"so is another reason", waiting, starting("", func(c *metav1.Condition) { c.Reason = "PodsEndEarly" }), 0, false},
		"Generation": {"and that a wish was seen", waiting, starting("", func(c *metav1.Condition) { c.ObservedGeneration = 3 }), 0, false},
		"Condition":  {"and what was not told before", waiting, &fake{conditions: append(starting("", nil).conditions, metav1.Condition{Type: "Other"})}, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := testEngine(noon)
			e.app.Recount = time.Second
			key := types.NamespacedName{Name: "a"}
			e.recounts.note(key, noon.Add(-c.written))
			r := &report[*fake, struct{}]{key: key, before: starting("5 of 9", nil), obj: c.now, decision: c.decision}
			if got := e.putOff(r); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
			if due := noon.Add(time.Second - c.written); c.want && !r.recount.Equal(due) {
				t.Errorf("it is to be told at %s, want %s", r.recount, due)
			}
			if e.recounts.forget(key); e.putOff(r) {
				t.Error("what is forgotten was never written")
			}
		})
	}
}
