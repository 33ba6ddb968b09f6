package publish

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// The status follows from the result and the application's conditions alone.
func TestStatusOfAResult(t *testing.T) {
	step := lifecycle.Step{Name: "Restart", Target: "a-0"}
	byPolicy := []lifecycle.Refusal{{Policy: "nights", Gate: "MaintenanceWindow", Message: "it is closed"}}
	available := []lifecycle.Condition{{Type: lifecycle.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Serves"}}
	before := []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "Earlier"}, {Type: lifecycle.ConditionDrifted, Status: metav1.ConditionTrue}}
	cases := map[string]struct {
		reason string
		result Result
		own    []lifecycle.Condition
		want   string
	}{
		"Settled": {"everything is as declared", Result{Decided: true, Decision: lifecycle.First()}, available,
			"2: Ready=True Reconciling=False Stalled=False Available=True(Serves)"},
		"Unseen": {"what was seen before is kept, and no generation is claimed", Result{Decision: lifecycle.RetryIn(0, "APIError", "")}, nil,
			"1: Ready=False Reconciling=True Stalled=False Available=True(Earlier)"},
		"Blocked": {"an object that cannot be rendered has been looked at", Result{Decision: lifecycle.Block("CannotRender", "")}, nil,
			"2: Ready=False Reconciling=False Stalled=True Available=True(Earlier)"},
		"Held": {"it serves, and a policy holds a change", Result{Decided: true, Decision: lifecycle.Held(step, byPolicy...)}, available,
			"2: Ready=True Reconciling=False Stalled=False ChangeHeld=True Available=True(Serves)"},
		"Drift": {"others changed something, and it stays", Result{Decided: true, Decision: lifecycle.First(), Drifts: []apply.Drift{{Kind: "Service", Name: "a"}}}, available,
			"2: Ready=True Reconciling=False Stalled=False Available=True(Serves) Drifted=True"},
		"Deletion": {"policies hold the deletion", Result{Decided: true, Decision: lifecycle.First(), Held: &HeldDeletion{step, byPolicy}}, available,
			"2: Ready=True Reconciling=False Stalled=False Available=True(Serves) DeletionHeld=True"},
		"Paused": {"nothing was seen", Result{Paused: true, Decision: lifecycle.Decision{Reason: "Paused"}}, nil,
			"1: Paused=True Available=True(Earlier)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &enginetest.Object{Status: enginetest.Status{ObservedGeneration: 1, Conditions: before}}
			obj.Generation = 2
			c.result.Object = obj
			c.result.Describe(c.own, time.Unix(1000, 0))
			if got := told(obj); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.reason, got, c.want)
			}
		})
	}
}

// told is the status of the object in a line.
func told(obj *enginetest.Object) string {
	observed, conditions := obj.StatusFields()
	words := []string{string(rune('0'+*observed)) + ":"}
	for _, c := range *conditions {
		word := c.Type + "=" + string(c.Status)
		if c.Type == lifecycle.ConditionAvailable {
			word += "(" + c.Reason + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// The history has what was done and what was refused, and what each gate said of it.
func TestHistoryOfAResult(t *testing.T) {
	restart := lifecycle.Step{Name: "Restart", Target: "a-0", Class: lifecycle.ClassDisruptive, Cause: lifecycle.CauseSpecChange}
	gates := []string{"KeepsQuorum"}
	closed := lifecycle.Refusal{Policy: "nights", Gate: "MaintenanceWindow", Message: "it is closed"}
	quorum := lifecycle.Refusal{Gate: "KeepsQuorum", Message: "1 of 3 would serve"}
	passed := []history.GateResult{{Gate: "KeepsQuorum"}, {Gate: "FleetBudget"}}
	cases := map[string]struct {
		reason string
		result Result
		want   *history.Entry
	}{
		"Nothing": {"a wait is no entry", Result{Decision: lifecycle.WaitFor(restart, time.Time{})}, nil},
		"Taken": {"every gate let it pass", Result{Taken: &Taken{Step: restart, Took: time.Second}},
			&history.Entry{Step: restart, Result: history.ResultSucceeded, Duration: time.Second, By: "ann", Gates: passed}},
		"Failed": {"it went wrong", Result{Taken: &Taken{Step: restart, Err: errors.New("no route")}},
			&history.Entry{Step: restart, Result: history.ResultFailed, Message: "no route", By: "ann", Gates: passed}},
		"Own": {"no gate judges the engine's own step", Result{Taken: &Taken{Step: restart, Own: true}},
			&history.Entry{Step: restart, Result: history.ResultSucceeded, By: "ann"}},
		"Gate": {"a gate objects", Result{Decision: lifecycle.Held(restart, quorum), Refusals: []lifecycle.Refusal{quorum}},
			&history.Entry{Step: restart, Result: history.ResultRefused, By: "ann", HeldBy: "KeepsQuorum", Message: "KeepsQuorum: 1 of 3 would serve",
				Gates: []history.GateResult{{Gate: "KeepsQuorum", Objection: "1 of 3 would serve"}}}},
		"Policy": {"a policy objects", Result{Decision: lifecycle.Held(restart, closed), Refusals: []lifecycle.Refusal{closed}},
			&history.Entry{Step: restart, Result: history.ResultRefused, By: "ann", HeldBy: "nights/MaintenanceWindow", Message: "nights/MaintenanceWindow: it is closed",
				Gates: []history.GateResult{{Gate: "KeepsQuorum"}, {Gate: "nights/MaintenanceWindow", Objection: "it is closed"}}}},
		"Deletion": {"policies hold the deletion", Result{Decision: lifecycle.First(), Held: &HeldDeletion{restart, []lifecycle.Refusal{closed}}},
			&history.Entry{Step: restart, Result: history.ResultRefused, By: "ann", HeldBy: "nights/MaintenanceWindow", Message: "nights/MaintenanceWindow: it is closed"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.result.Before, c.result.Object, c.result.Author = &enginetest.Object{}, &enginetest.Object{}, "ann"
			if diff := cmp.Diff(c.want, c.result.Entry(gates), cmpopts.IgnoreUnexported(history.Entry{})); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestHoldingPolicies(t *testing.T) {
	r := Result{
		Refusals: []lifecycle.Refusal{{Policy: "a"}, {Gate: "KeepsQuorum"}, {Policy: "a"}},
		Held:     &HeldDeletion{Refusals: []lifecycle.Refusal{{Policy: "b"}}},
	}
	if diff := cmp.Diff([]string{"a", "b"}, r.HoldingPolicies()); diff != "" {
		t.Error(diff)
	}
}

// The author of a change is recorded with the steps of the change, not with repairs.
func TestARepairHasNoAuthor(t *testing.T) {
	for cause, want := range map[lifecycle.Cause]string{lifecycle.CauseSpecChange: "kubectl-patch", lifecycle.CauseFault: "", lifecycle.CauseDrift: "", "": "kubectl-patch"} {
		step := lifecycle.Step{Name: "Remove", Cause: cause}
		r := &Result{Author: "kubectl-patch", Taken: &Taken{Step: step}}
		if got := r.changedBy(step); got != want {
			t.Errorf("%s: by %q, want %q", cause, got, want)
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
		"Failed":   {"a step that went wrong is history", errors.New("disk on fire"), "StepFailed", true},
		"Deferred": {"one that was not begun is not", &lifecycle.Deferred{Reason: "it serves again"}, "Deferred", false},
		"Going":    {"nor one that is too early", &apply.StillDeletingError{Kind: "StatefulSet", Name: "m"}, "PreviousStillDeleting", false},
		"Foreign":  {"a person must know what to do", &apply.ForeignError{Kind: "StatefulSet", Name: "m"}, "NameTaken", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Result{Taken: &Taken{Err: fmt.Errorf("cannot: %w", c.err)}}
			r.StepFailed(lifecycle.Step{Name: "StartMember"})
			if d := r.Decision; d.Reason != c.want || d.Step.Name != "StartMember" || (r.Taken != nil) != c.remembered {
				t.Errorf("%s: got %s, remembered %v", c.reason, d, r.Taken != nil)
			}
		})
	}
}
