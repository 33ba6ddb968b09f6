package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

func TestFirst(t *testing.T) {
	blocked := lifecycle.Block("QuorumLost", "choose")
	retry := lifecycle.RetryIn(time.Second, "Conflict", "again")
	cases := map[string]struct {
		reason string
		rules  []lifecycle.Decision
		want   string
	}{
		"NobodySpeaks": {"silence means that all is well", []lifecycle.Decision{{}, {}}, "AsDeclared"},
		"NoRules":      {"an application without rules is settled", nil, "AsDeclared"},
		"Precedence":   {"an earlier rule outranks a later one", []lifecycle.Decision{{}, blocked, retry}, "QuorumLost"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.First(c.rules...).Reason; got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

func TestGateNeverObjectsToWhatMakesNothingWorse(t *testing.T) {
	gate := lifecycle.Gate[string, int]{
		Name:      "KeepsQuorum",
		Violation: func(_ string, missing int) int { return max(0, missing-1) },
		Message:   func(_ string, _, _ int, _ lifecycle.Step) string { return "quorum would be lost" },
	}
	cases := map[string]struct {
		reason         string
		before, during int
		refused        bool
	}{
		"Kept":        {"the promise is kept during the step", 0, 1, false},
		"Broken":      {"the step would break the promise", 1, 2, true},
		"Worse":       {"a broken promise must not be broken further", 2, 3, true},
		"SameHarm":    {"the step makes nothing worse", 3, 3, false},
		"RepairsHalf": {"a repair passes also if it does not heal all", 4, 3, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refusals := lifecycle.Judge([]lifecycle.Gate[string, int]{gate}, "", c.before, c.during, lifecycle.Step{})
			if got := len(refusals) > 0; got != c.refused {
				t.Errorf("%s: refused = %v, want %v", c.reason, got, c.refused)
			}
		})
	}
}

// An absolute gate lets nothing be destroyed while its promise is broken.
func TestAnAbsoluteGateHoldsWhatDestroys(t *testing.T) {
	gate := lifecycle.Gate[string, int]{
		Name: "KeepsQuorum", Absolute: true,
		Violation: func(_ string, missing int) int { return missing },
		Message:   func(_ string, _, _ int, _ lifecycle.Step) string { return "too few would serve" },
	}
	for class, refused := range map[lifecycle.Class]bool{
		lifecycle.ClassRoutine: false, lifecycle.ClassDisruptive: false, lifecycle.ClassDestructive: true, lifecycle.ClassIrreversible: true,
	} {
		if got := gate.Judge("", 1, 1, lifecycle.Step{Class: class}) != nil; got != refused {
			t.Errorf("a %s step that makes a broken promise no worse: refused = %v, want %v", class, got, refused)
		}
		if gate.Judge("", 1, 0, lifecycle.Step{Class: class}) != nil {
			t.Errorf("a %s step during which the promise is kept is refused", class)
		}
	}
}

func TestSummary(t *testing.T) {
	step := lifecycle.Step{Name: "AddMember", Reason: "TooFewMembers"}
	cases := map[string]struct {
		reason                      string
		decision                    lifecycle.Decision
		ready, reconciling, stalled bool
	}{
		"Settled": {"only Settled is Ready", lifecycle.First(), true, false, false},
		"Proceed": {"a step is progress", lifecycle.Proceed(step), false, true, false},
		"Wait":    {"a wait is progress", lifecycle.WaitFor(step, time.Time{}), false, true, false},
		"Retry":   {"a retry is progress", lifecycle.RetryIn(1, "Conflict", ""), false, true, false},
		"Blocked": {"blocked is no progress", lifecycle.Block("QuorumLost", ""), false, false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]metav1.ConditionStatus{
				lifecycle.ConditionReady:       lifecycle.StatusOf(c.ready),
				lifecycle.ConditionReconciling: lifecycle.StatusOf(c.reconciling),
				lifecycle.ConditionStalled:     lifecycle.StatusOf(c.stalled),
			}
			got := map[string]metav1.ConditionStatus{}
			for _, f := range lifecycle.StandardConditions(c.decision, nil) {
				got[f.Type] = f.Status
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// Ready speaks of the service: a change that a policy holds takes it from no application that serves in full.
func TestAChangeHeldByAPolicyLeavesReady(t *testing.T) {
	step := lifecycle.Step{Name: "Restart", Target: "a"}
	byPolicy := lifecycle.Held(step, lifecycle.Refusal{Gate: "Freeze", Policy: "p"})
	available := lifecycle.Condition{Type: lifecycle.ConditionAvailable, Status: metav1.ConditionTrue}
	degraded := lifecycle.Condition{Type: lifecycle.ConditionDegraded, Status: metav1.ConditionTrue}
	cases := map[string]struct {
		reason   string
		decision lifecycle.Decision
		own      []lifecycle.Condition
		ready    bool
	}{
		"Serves":   {"it serves", byPolicy, []lifecycle.Condition{available}, true},
		"Degraded": {"not all of it works", byPolicy, []lifecycle.Condition{available, degraded}, false},
		"Unknown":  {"it does not say that it serves", byPolicy, nil, false},
		"Gate":     {"a gate opens soon", lifecycle.Held(step, lifecycle.Refusal{Gate: "KeepsQuorum"}), []lifecycle.Condition{available}, false},
		"Wait":     {"something is under way", lifecycle.WaitFor(step, time.Time{}), []lifecycle.Condition{available}, false},
	}
	for name, c := range cases {
		got := lifecycle.StandardConditions(c.decision, c.own)
		if ready := got[0].Status == metav1.ConditionTrue; ready != c.ready || (len(got) == 4) != c.ready {
			t.Errorf("%s: %s: got %+v", name, c.reason, got)
		}
	}
}

func TestMergeOfTheSameFactsChangesNothing(t *testing.T) {
	facts := lifecycle.StandardConditions(lifecycle.First(), nil)
	first := lifecycle.Merge(nil, facts, 1, metav1.Unix(100, 0))
	again := lifecycle.Merge(first, facts, 1, metav1.Unix(200, 0))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("a settled object would be written again: %s", diff)
	}
	gone := lifecycle.Merge(again, facts[:1], 1, metav1.Unix(300, 0))
	if len(gone) != 1 {
		t.Errorf("conditions that are no longer told must go, have %d", len(gone))
	}
}
