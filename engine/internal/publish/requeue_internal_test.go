package publish

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/engine/internal/wake"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

func TestNextTurn(t *testing.T) {
	now := time.Unix(1000, 0)
	step := lifecycle.Step{Name: "Add", Intent: lifecycle.IntentRepair}
	wish := lifecycle.Step{Name: "Add", Intent: lifecycle.IntentChange}
	wait := lifecycle.WaitFor(step, now)
	cases := map[string]struct {
		reason   string
		decision lifecycle.Decision
		refused  bool
		want     time.Duration
		priority *int
	}{
		"Settled":   {"at rest nothing is due, and nothing is urgent any more", lifecycle.First(), false, 0, new(wake.Ordinary)},
		"Heartbeat": {"unless the application cannot be watched", lifecycle.First().Heartbeat(time.Minute), false, time.Minute, new(wake.Ordinary)},
		"Proceed":   {"a step is followed by the next turn, repairs first", lifecycle.Proceed(step), false, BetweenSteps, new(wake.Urgent)},
		"Wish":      {"a wish waits its turn, also after a repair", lifecycle.Proceed(wish), false, BetweenSteps, new(wake.Ordinary)},
		"Wait":      {"what is watched wakes by itself", wait, false, 0, new(wake.Urgent)},
		"Deadline":  {"a deadline is looked at", wait.Until(now.Add(time.Hour)), false, time.Hour, new(wake.Urgent)},
		"Past":      {"a deadline in the past is looked at now", wait.Until(now.Add(-time.Hour)), false, BetweenSteps, new(wake.Urgent)},
		"Held":      {"a held step is asked for again", lifecycle.Held(step, lifecycle.Refusal{}), true, heldInterval, new(wake.Urgent)},
		"Blocked":   {"blocked objects come back, ever more slowly", lifecycle.Block("X", ""), false, 50 * time.Millisecond, new(wake.Ordinary)},
		"RetryIn":   {"a planner may say when; it is as urgent as it was", lifecycle.RetryIn(time.Hour, "X", ""), false, time.Hour, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := publisher(now)
			r := &Result{Decision: c.decision}
			if c.refused {
				r.Refusals = []lifecycle.Refusal{{}}
			}
			got := p.Requeue(r)
			want := reconcile.Result{RequeueAfter: c.want, Priority: c.priority}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// A certificate that is due is looked at, whatever else the object is about.
func TestNextTurnForACertificate(t *testing.T) {
	now := time.Unix(1000, 0)
	cases := map[string]struct {
		reason   string
		decision lifecycle.Decision
		due      time.Duration
		want     time.Duration
	}{
		"AtRest":  {"nothing else would wake it", lifecycle.First(), time.Hour, time.Hour},
		"Sooner":  {"a heartbeat comes too late", lifecycle.First().Heartbeat(2 * time.Hour), time.Hour, time.Hour},
		"Later":   {"a heartbeat comes first", lifecycle.First().Heartbeat(time.Minute), time.Hour, time.Minute},
		"Waiting": {"also while it waits for something", lifecycle.WaitFor(lifecycle.Step{}, now), time.Hour, time.Hour},
		"Blocked": {"and while a person has to act", lifecycle.Block("X", ""), time.Millisecond, BetweenSteps},
		"Past":    {"what is overdue does not spin", lifecycle.First(), -time.Hour, BetweenSteps},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Result{Decision: c.decision, Due: now.Add(c.due)}
			if got := publisher(now).Requeue(r).RequeueAfter; got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

// An application that cannot be watched is looked at also while a person is awaited: what
// breaks meanwhile is mended.
func TestHeldObjectsAreObserved(t *testing.T) {
	word := []lifecycle.Refusal{{Policy: "p", Gate: policy.GateApproval}}
	for heartbeat, want := range map[time.Duration]time.Duration{0: approvalInterval, time.Second: observeInterval, time.Minute: time.Minute, time.Hour: approvalInterval} {
		d := lifecycle.Held(lifecycle.Step{}, word...)
		d.After = heartbeat
		r := &Result{Decision: d, Refusals: word}
		if got := publisher(time.Unix(1000, 0)).Requeue(r).RequeueAfter; got != want {
			t.Errorf("with a heartbeat of %v it is looked at after %v, want %v", heartbeat, got, want)
		}
	}
}

// An object that a window holds is reconciled when the window opens; one that a gate holds is
// reconciled at intervals.
func TestNextTurnOfTheHeld(t *testing.T) {
	now := time.Unix(1000, 0)
	window := lifecycle.Refusal{Policy: "p", Gate: policy.GateMaintenanceWindow, Until: now.Add(time.Minute)}
	word := lifecycle.Refusal{Policy: "p", Gate: policy.GateApproval}
	cases := map[string]struct {
		reason   string
		refusals []lifecycle.Refusal
		expires  time.Duration
		want     time.Duration
	}{
		"Window":   {"when it opens", []lifecycle.Refusal{window}, 0, time.Minute},
		"Past":     {"it has just opened", []lifecycle.Refusal{{Policy: "p", Until: now.Add(-time.Second)}}, 0, BetweenSteps},
		"Far":      {"clocks may be put forward", []lifecycle.Refusal{{Policy: "p", Until: now.Add(time.Hour)}}, 0, approvalInterval},
		"Approval": {"a word wakes it", []lifecycle.Refusal{word}, 0, approvalInterval},
		"Both":     {"the first to change", []lifecycle.Refusal{word, window}, 0, time.Minute},
		"Wave":     {"others are looked at", []lifecycle.Refusal{{Policy: "p", Gate: policy.GateCanary}, window}, 0, heldInterval},
		"Budget":   {"a slot may have no other end", []lifecycle.Refusal{{Policy: "p", Gate: policy.GateBudget}}, 0, heldInterval},
		"World":    {"so is the world", []lifecycle.Refusal{{Gate: "KeepsQuorum"}}, 0, heldInterval},
		"Expiry":   {"the end of an approval is reported", []lifecycle.Refusal{window}, time.Second, time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Result{Decision: lifecycle.Held(lifecycle.Step{}, c.refusals...), Refusals: c.refusals}
			if c.expires > 0 {
				r.Expires = now.Add(c.expires)
			}
			if got := publisher(now).Requeue(r).RequeueAfter; got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

func TestBlockedObjectsDoNotSpin(t *testing.T) {
	p := publisher(time.Unix(0, 0))
	r := &Result{Decision: lifecycle.Block("X", "")}
	var last time.Duration
	for range 20 {
		got := p.Requeue(r).RequeueAfter
		if got < last {
			t.Fatalf("%v after %v: it must not come back faster", got, last)
		}
		last = got
	}
	if last != 30*time.Second {
		t.Errorf("the pause grows to %v, got %v", 30*time.Second, last)
	}
}
