package publish

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

func TestStatusDelay(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	starting := func(message string, edit func(*metav1.Condition)) *enginetest.Object {
		c := metav1.Condition{Type: lifecycle.ConditionReady, Status: metav1.ConditionFalse, Reason: "PodsStarting", Message: message, ObservedGeneration: 2}
		if edit != nil {
			edit(&c)
		}
		return &enginetest.Object{Status: enginetest.Status{Conditions: []metav1.Condition{c}}}
	}
	waiting := lifecycle.WaitFor(lifecycle.Step{Name: "PodsReady"}, time.Time{})
	cases := map[string]struct {
		reason   string
		decision lifecycle.Decision
		now      *enginetest.Object
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
		"Condition":  {"and what was not told before", waiting, &enginetest.Object{Status: enginetest.Status{Conditions: append(starting("", nil).Status.Conditions, metav1.Condition{Type: "Other"})}}, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := publisher(noon)
			p.Throttle.Interval = time.Second
			key := types.NamespacedName{Name: "a"}
			p.Throttle.written.Put(key, noon.Add(-c.written))
			r := &Result{Key: key, Before: starting("5 of 9", nil), Object: c.now, Decision: c.decision}
			r.StatusDue = p.Throttle.due(r)
			if due := noon.Add(time.Second - c.written); c.want && !r.StatusDue.Equal(due) || !c.want && !r.StatusDue.IsZero() {
				t.Errorf("%s: it is written at %s", c.reason, r.StatusDue)
			}
			if after := p.Requeue(r).RequeueAfter; c.want && after != time.Second-c.written {
				t.Errorf("it is looked at again after %v", after)
			}
			if p.Throttle.written.Forget(key); !p.Throttle.due(r).IsZero() {
				t.Error("what is forgotten was never written")
			}
		})
	}
}

func TestStepIsReportedAtOnce(t *testing.T) {
	p := publisher(time.Unix(1000, 0))
	p.Throttle.Interval = time.Second
	r := &Result{Before: &enginetest.Object{}, Object: &enginetest.Object{Status: enginetest.Status{ObservedGeneration: 1}}, Decision: lifecycle.WaitFor(lifecycle.Step{}, time.Time{})}
	if p.Throttle.noteWritten(r); p.Throttle.due(r).IsZero() {
		t.Error("what was just told can wait")
	}
	r.Taken = &Taken{}
	if p.Throttle.noteWritten(r); !p.Throttle.due(r).IsZero() {
		t.Error("after a step nothing waits")
	}
}

const tellWithin = time.Second

func TestStepsHavePriorityOverStatusWrites(t *testing.T) {
	now := time.Unix(1000, 0)
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "PodsReady"}, time.Time{})
	told := &enginetest.Object{Status: enginetest.Status{Conditions: []metav1.Condition{{Type: lifecycle.ConditionReady, Reason: "PodsStarting"}}}}
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
			p := publisher(now)
			p.Throttle.Delay = tellWithin
			p.Throttle.IsBusy = func() bool { return c.queued > 8 }
			if c.before > 0 {
				p.Throttle.pending.Put(types.NamespacedName{}, pendingStatus{since: now.Add(-c.before)})
			}
			r := &Result{Before: &enginetest.Object{}, Object: told, Decision: c.decision, Refusals: c.refusals}
			var got time.Duration
			if r.StatusDue = p.Throttle.due(r); !r.StatusDue.IsZero() {
				got = r.StatusDue.Sub(now)
			}
			if got != c.want {
				t.Errorf("%s: it is written after %v, want %v", c.reason, got, c.want)
			}
			if p.Throttle.Delay = 0; !p.Throttle.due(r).IsZero() {
				t.Error("a kind whose planner reads its status waits")
			}
			if silent := !r.news(); silent != (c.want > 0) {
				t.Error("no event tells what the status does not")
			}
		})
	}
}

func TestDelayedStatusKeepsChanges(t *testing.T) {
	now := time.Unix(1000, 0)
	p := publisher(now)
	turn := func(later time.Time, kind string) []apply.Change {
		r := &Result{StatusDue: later}
		if kind != "" {
			r.Changes = []apply.Change{create(kind)}
		}
		p.Throttle.collect(r)
		return r.Done
	}
	turn(now.Add(tellWithin), "Service")
	turn(now.Add(tellWithin), "Deployment")
	if kept, _ := p.Throttle.pending.Get(types.NamespacedName{}); !kept.since.Equal(now) || len(kept.done) != 2 {
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
