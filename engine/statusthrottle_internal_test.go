package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

func TestLater(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	starting := func(message string, edit func(*metav1.Condition)) *fake {
		c := metav1.Condition{Type: lifecycle.ConditionReady, Status: metav1.ConditionFalse, Reason: "PodsStarting", Message: message, ObservedGeneration: 2}
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
		"Never":      {"the first status is written at once", waiting, starting("7 of 9", nil), 1000 * time.Hour, false},
		"Done":       {"the end is written at once", lifecycle.Settled("AllAvailable", ""), starting("9 of 9", nil), 0, false},
		"Blocked":    {"a problem is written at once", lifecycle.Block("QuotaExceeded", ""), starting("7 of 9", nil), 0, false},
		"Reason":     {"so is another reason", waiting, starting("", func(c *metav1.Condition) { c.Reason = "PodsEndEarly" }), 0, false},
		"Generation": {"and that a wish was seen", waiting, starting("", func(c *metav1.Condition) { c.ObservedGeneration = 3 }), 0, false},
		"Condition":  {"and what was not told before", waiting, &fake{conditions: append(starting("", nil).conditions, metav1.Condition{Type: "Other"})}, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := testEngine(noon)
			e.app.StatusInterval = time.Second
			key := types.NamespacedName{Name: "a"}
			e.lastStatusWrite.Put(key, noon.Add(-c.written))
			r := &result{key: key, before: starting("5 of 9", nil), object: c.now, decision: c.decision}
			r.statusDue = e.statusDue(r)
			if due := noon.Add(time.Second - c.written); c.want && !r.statusDue.Equal(due) || !c.want && !r.statusDue.IsZero() {
				t.Errorf("%s: it is written at %s", c.reason, r.statusDue)
			}
			if after := e.requeue(r).RequeueAfter; c.want && after != time.Second-c.written {
				t.Errorf("it is looked at again after %v", after)
			}
			if e.lastStatusWrite.Forget(key); !e.statusDue(r).IsZero() {
				t.Error("what is forgotten was never written")
			}
		})
	}
}

func TestWhatAStepChangedIsToldAtOnce(t *testing.T) {
	e := testEngine(time.Unix(1000, 0))
	e.app.StatusInterval = time.Second
	r := &result{before: &fake{}, object: &fake{generation: 1}, decision: lifecycle.WaitFor(lifecycle.Step{}, time.Time{})}
	if e.noteStatusWritten(r); e.statusDue(r).IsZero() {
		t.Error("what was just told can wait")
	}
	r.taken = &stepResult{}
	if e.noteStatusWritten(r); !e.statusDue(r).IsZero() {
		t.Error("after a step nothing waits")
	}
}

const tellWithin = time.Second

func TestToActComesBeforeToTell(t *testing.T) {
	now := time.Unix(1000, 0)
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "PodsReady"}, time.Time{})
	told := &fake{conditions: []metav1.Condition{{Type: lifecycle.ConditionReady, Reason: "PodsStarting"}}}
	cases := map[string]struct {
		reason   string
		queued   int
		before   time.Duration // when it was first put off, before now; 0 if it was not
		decision lifecycle.Decision
		refusals []lifecycle.Refusal
		want     time.Duration // until it is written
	}{
		"Hurry":    {"others have not had their turn", 9, 0, wait, nil, tellWithin},
		"Again":    {"it is put off once, not with every turn", 9, 300 * time.Millisecond, wait, nil, 700 * time.Millisecond},
		"LongAgo":  {"a user may wait for it", 9, tellWithin, wait, nil, 0},
		"Peace":    {"the workers take all that there is", 8, 0, wait, nil, 0},
		"Done":     {"the end is written at once", 9, 0, lifecycle.Settled("AllAvailable", ""), nil, 0},
		"Trouble":  {"a person must act", 9, 0, lifecycle.Block("QuotaExceeded", ""), nil, 0},
		"HeldStep": {"a person may have to approve it", 9, 0, wait, []lifecycle.Refusal{{Gate: "Window"}}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := testEngine(now)
			e.app.Workers, e.app.StatusDelay = 8, tellWithin
			waiting := lengthOf(c.queued)
			e.queue.Store(&waiting)
			if c.before > 0 {
				e.pendingStatus.Put(types.NamespacedName{}, pendingStatus{since: now.Add(-c.before)})
			}
			r := &result{before: &fake{}, object: told, decision: c.decision, refusals: c.refusals}
			var got time.Duration
			if r.statusDue = e.statusDue(r); !r.statusDue.IsZero() {
				got = r.statusDue.Sub(now)
			}
			if got != c.want {
				t.Errorf("%s: it is written after %v, want %v", c.reason, got, c.want)
			}
			if e.app.StatusDelay = 0; !e.statusDue(r).IsZero() {
				t.Error("a kind whose planner reads its status waits")
			}
			if silent := !r.news(); silent != (c.want > 0) {
				t.Error("no event tells what the status does not")
			}
		})
	}
}

func TestRecollect(t *testing.T) {
	now := time.Unix(1000, 0)
	e := testEngine(now)
	turn := func(later time.Time, kind string) []apply.Change {
		r := &result{statusDue: later}
		if kind != "" {
			r.changes = []apply.Change{create(kind)}
		}
		e.collectChanges(r)
		return r.done
	}
	turn(now.Add(tellWithin), "Service")
	turn(now.Add(tellWithin), "Deployment")
	if kept, _ := e.pendingStatus.Get(types.NamespacedName{}); !kept.since.Equal(now) || len(kept.done) != 2 {
		t.Errorf("kept is %v", kept)
	}
	want := []apply.Change{create("Service"), create("Deployment")}
	if diff := cmp.Diff(want, turn(time.Time{}, "")); diff != "" {
		t.Errorf("the turn that tells tells all (-want +got):\n%s", diff)
	}
	if got := turn(time.Time{}, ""); len(got) != 0 {
		t.Errorf("a written status is written again: %v", got)
	}
}

// lengthOf is a queue of which only the length is known.
func lengthOf(n int) queue { return stub{length: n} }

type stub struct {
	queue
	length int
}

func (s stub) Len() int { return s.length }
