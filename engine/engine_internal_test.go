package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "p", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason  string
		err     error
		outcome lifecycle.Outcome
		want    string
	}{
		"Foreign":     {"only the user can free a name", &apply.ForeignError{Kind: "Service", Name: "m"}, lifecycle.OutcomeBlocked, "NameTaken"},
		"Going":       {"what is being deleted goes by itself", &apply.StillDeletingError{Kind: "Service", Name: "m"}, lifecycle.OutcomeRetry, "PreviousStillDeleting"},
		"Quota":       {"a quota has its own name", apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), lifecycle.OutcomeBlocked, "QuotaExceeded"},
		"Forbidden":   {"rights are missing", apierrors.NewForbidden(pods, "p", errors.New("no")), lifecycle.OutcomeBlocked, "Forbidden"},
		"Terminating": {"the namespace goes", terminating, lifecycle.OutcomeBlocked, "NamespaceTerminating"},
		"Invalid":     {"the API server does not accept the spec", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), lifecycle.OutcomeBlocked, "Refused"},
		"Conflict":    {"another writer was faster", apierrors.NewConflict(pods, "p", errors.New("changed")), lifecycle.OutcomeRetry, "Conflict"},
		"Network":     {"the API server is away", errors.New("connection refused"), lifecycle.OutcomeRetry, "APIError"},
		"Compare": {"the API server received no write", fmt.Errorf("x: %w", &apply.CompareError{Kind: "Certificate", Name: "m", Err: errors.New("no")}),
			lifecycle.OutcomeRetry, "CannotCompare"},
		"Recipe": {"a certificate request that is invalid", &certificate.RequestError{Secret: "s", Fault: "f"}, lifecycle.OutcomeBlocked, "CannotRender"},
		"Joined": {"of several, what needs a person counts", errors.Join(errors.New("x"), &apply.ForeignError{}), lifecycle.OutcomeBlocked, "NameTaken"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := explain(fmt.Errorf("cannot apply: %w", c.err))
			if d.Outcome != c.outcome || d.Reason != c.want || !strings.HasSuffix(d.Message, ".") {
				t.Errorf("%s: got %s, want %s %s", c.reason, d, c.outcome, c.want)
			}
		})
	}
}

func TestWhatIsPostponedForATimeIsTriedAgainThen(t *testing.T) {
	for _, after := range []time.Duration{0, 300 * time.Millisecond} {
		d := explain(fmt.Errorf("cannot add: %w", &lifecycle.Deferred{Reason: "five seconds have not passed", After: after}))
		if d.Outcome != lifecycle.OutcomeRetry || d.After != after {
			t.Errorf("postponed for %s: got %s after %s", after, d, d.After)
		}
	}
}

func TestFailedStep(t *testing.T) {
	cases := map[string]struct {
		reason     string
		err        error
		want       string
		remembered bool
	}{
		"Failed":    {"a step that went wrong is history", errors.New("disk on fire"), "StepFailed", true},
		"Postponed": {"one that was not begun is not", &lifecycle.Deferred{Reason: "it serves again"}, "Postponed", false},
		"Going":     {"nor one that is too early", &apply.StillDeletingError{Kind: "StatefulSet", Name: "m"}, "PreviousStillDeleting", false},
		"Foreign":   {"a person must know what to do", &apply.ForeignError{Kind: "StatefulSet", Name: "m"}, "NameTaken", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &result{taken: &stepResult{err: fmt.Errorf("cannot: %w", c.err)}}
			r.failed(lifecycle.Step{Name: "StartMember"})
			if d := r.decision; d.Reason != c.want || d.Step.Name != "StartMember" || (r.taken != nil) != c.remembered {
				t.Errorf("%s: got %s, remembered %v", c.reason, d, r.taken != nil)
			}
		})
	}
}

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
		"Settled":   {"at rest nothing is due, and nothing is urgent any more", lifecycle.First(), false, 0, new(ordinary)},
		"Heartbeat": {"unless the application cannot be watched", lifecycle.First().Heartbeat(time.Minute), false, time.Minute, new(ordinary)},
		"Proceed":   {"a step is followed by the next turn, repairs first", lifecycle.Proceed(step), false, betweenSteps, new(urgent)},
		"Wish":      {"a wish waits its turn, also after a repair", lifecycle.Proceed(wish), false, betweenSteps, new(ordinary)},
		"Wait":      {"what is watched wakes by itself", wait, false, 0, new(urgent)},
		"Deadline":  {"a deadline is looked at", wait.Until(now.Add(time.Hour)), false, time.Hour, new(urgent)},
		"Past":      {"a deadline in the past is looked at now", wait.Until(now.Add(-time.Hour)), false, betweenSteps, new(urgent)},
		"Held":      {"a held step is asked for again", lifecycle.Held(step, lifecycle.Refusal{}), true, heldInterval, new(urgent)},
		"Blocked":   {"blocked objects come back, ever more slowly", lifecycle.Block("X", ""), false, firstRetry, new(ordinary)},
		"RetryIn":   {"a planner may say when; it is as urgent as it was", lifecycle.RetryIn(time.Hour, "X", ""), false, time.Hour, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := testEngine(now)
			r := &result{decision: c.decision}
			if c.refused {
				r.refusals = []lifecycle.Refusal{{}}
			}
			got := e.requeue(r)
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
		"Blocked": {"and while a person has to act", lifecycle.Block("X", ""), time.Millisecond, betweenSteps},
		"Past":    {"what is overdue does not spin", lifecycle.First(), -time.Hour, betweenSteps},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &result{decision: c.decision, due: now.Add(c.due)}
			if got := testEngine(now).requeue(r).RequeueAfter; got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

// An application that cannot be watched is looked at also while a person is awaited: what
// breaks meanwhile is mended.
func TestTheHeldAreLookedAt(t *testing.T) {
	word := []lifecycle.Refusal{{Policy: "p", Gate: policy.Approval}}
	for heartbeat, want := range map[time.Duration]time.Duration{0: approvalInterval, time.Second: observeInterval, time.Minute: time.Minute, time.Hour: approvalInterval} {
		d := lifecycle.Held(lifecycle.Step{}, word...)
		d.After = heartbeat
		r := &result{decision: d, refusals: word}
		if got := testEngine(time.Unix(1000, 0)).requeue(r).RequeueAfter; got != want {
			t.Errorf("with a heartbeat of %v it is looked at after %v, want %v", heartbeat, got, want)
		}
	}
}

// An object that a window holds is reconciled when the window opens; one that a gate holds is
// reconciled at intervals.
func TestNextTurnOfTheHeld(t *testing.T) {
	now := time.Unix(1000, 0)
	window := lifecycle.Refusal{Policy: "p", Gate: policy.MaintenanceWindow, Until: now.Add(time.Minute)}
	word := lifecycle.Refusal{Policy: "p", Gate: policy.Approval}
	cases := map[string]struct {
		reason   string
		refusals []lifecycle.Refusal
		expires  time.Duration
		want     time.Duration
	}{
		"Window":   {"when it opens", []lifecycle.Refusal{window}, 0, time.Minute},
		"Past":     {"it has just opened", []lifecycle.Refusal{{Policy: "p", Until: now.Add(-time.Second)}}, 0, betweenSteps},
		"Far":      {"clocks may be put forward", []lifecycle.Refusal{{Policy: "p", Until: now.Add(time.Hour)}}, 0, approvalInterval},
		"Approval": {"a word wakes it", []lifecycle.Refusal{word}, 0, approvalInterval},
		"Both":     {"the first to change", []lifecycle.Refusal{word, window}, 0, time.Minute},
		"Wave":     {"others are looked at", []lifecycle.Refusal{{Policy: "p", Gate: policy.Canary}, window}, 0, heldInterval},
		"Budget":   {"a slot may have no other end", []lifecycle.Refusal{{Policy: "p", Gate: policy.Budget}}, 0, heldInterval},
		"World":    {"so is the world", []lifecycle.Refusal{{Gate: "KeepsQuorum"}}, 0, heldInterval},
		"Expiry":   {"the end of an approval is reported", []lifecycle.Refusal{window}, time.Second, time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &result{decision: lifecycle.Held(lifecycle.Step{}, c.refusals...), refusals: c.refusals}
			if c.expires > 0 {
				r.expires = now.Add(c.expires)
			}
			if got := testEngine(now).requeue(r).RequeueAfter; got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

func TestBlockedObjectsDoNotSpin(t *testing.T) {
	e := testEngine(time.Unix(0, 0))
	r := &result{decision: lifecycle.Block("X", "")}
	var last time.Duration
	for range 20 {
		got := e.requeue(r).RequeueAfter
		if got < last {
			t.Fatalf("%v after %v: it must not come back faster", got, last)
		}
		last = got
	}
	if last != lastRetry {
		t.Errorf("the pause grows to %v, got %v", lastRetry, last)
	}
}
