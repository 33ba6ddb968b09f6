package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		result result
		own    []lifecycle.Condition
		want   string
	}{
		"Settled": {"everything is as declared", result{decided: true, decision: lifecycle.First()}, available,
			"2: Ready=True Reconciling=False Stalled=False Available=True(Serves)"},
		"Unseen": {"what was seen before is kept, and no generation is claimed", result{decision: lifecycle.RetryIn(0, "APIError", "")}, nil,
			"1: Ready=False Reconciling=True Stalled=False Available=True(Earlier)"},
		"Blocked": {"an object that cannot be rendered has been looked at", result{decision: lifecycle.Block("CannotRender", "")}, nil,
			"2: Ready=False Reconciling=False Stalled=True Available=True(Earlier)"},
		"Held": {"it serves, and a policy holds a change", result{decided: true, decision: lifecycle.Held(step, byPolicy...)}, available,
			"2: Ready=True Reconciling=False Stalled=False ChangeHeld=True Available=True(Serves)"},
		"Drift": {"others changed something, and it stays", result{decided: true, decision: lifecycle.First(), drifts: []apply.Drift{{Kind: "Service", Name: "a"}}}, available,
			"2: Ready=True Reconciling=False Stalled=False Available=True(Serves) Drifted=True"},
		"Deletion": {"policies hold the deletion", result{decided: true, decision: lifecycle.First(), held: &heldDeletion{step, byPolicy}}, available,
			"2: Ready=True Reconciling=False Stalled=False Available=True(Serves) DeletionHeld=True"},
		"Paused": {"nothing was seen", result{paused: true, decision: lifecycle.Decision{Reason: "Paused"}}, nil,
			"1: Paused=True Available=True(Earlier)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &fake{generation: 1, conditions: before}
			obj.Generation = 2
			c.result.object = obj
			c.result.describe(c.own, time.Unix(1000, 0))
			if got := told(obj); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.reason, got, c.want)
			}
		})
	}
}

// told is the status of the object in a line.
func told(obj *fake) string {
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
		result result
		want   *history.Entry
	}{
		"Nothing": {"a wait is no entry", result{decision: lifecycle.WaitFor(restart, time.Time{})}, nil},
		"Taken": {"every gate let it pass", result{taken: &stepResult{step: restart, took: time.Second}},
			&history.Entry{Step: restart, Result: history.Succeeded, Duration: time.Second, By: "ann", Gates: passed}},
		"Failed": {"it went wrong", result{taken: &stepResult{step: restart, err: errors.New("no route")}},
			&history.Entry{Step: restart, Result: history.Failed, Message: "no route", By: "ann", Gates: passed}},
		"Own": {"no gate judges the engine's own step", result{taken: &stepResult{step: restart, own: true}},
			&history.Entry{Step: restart, Result: history.Succeeded, By: "ann"}},
		"Gate": {"a gate objects", result{decision: lifecycle.Held(restart, quorum), refusals: []lifecycle.Refusal{quorum}},
			&history.Entry{Step: restart, Result: history.Refused, By: "ann", HeldBy: "KeepsQuorum", Message: "KeepsQuorum: 1 of 3 would serve",
				Gates: []history.GateResult{{Gate: "KeepsQuorum", Objection: "1 of 3 would serve"}}}},
		"Policy": {"a policy objects", result{decision: lifecycle.Held(restart, closed), refusals: []lifecycle.Refusal{closed}},
			&history.Entry{Step: restart, Result: history.Refused, By: "ann", HeldBy: "nights/MaintenanceWindow", Message: "nights/MaintenanceWindow: it is closed",
				Gates: []history.GateResult{{Gate: "KeepsQuorum"}, {Gate: "nights/MaintenanceWindow", Objection: "it is closed"}}}},
		"Deletion": {"policies hold the deletion", result{decision: lifecycle.First(), held: &heldDeletion{restart, []lifecycle.Refusal{closed}}},
			&history.Entry{Step: restart, Result: history.Refused, By: "ann", HeldBy: "nights/MaintenanceWindow", Message: "nights/MaintenanceWindow: it is closed"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.result.before, c.result.object, c.result.author = &fake{}, &fake{}, "ann"
			if diff := cmp.Diff(c.want, c.result.entry(gates), cmpopts.IgnoreUnexported(history.Entry{})); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestHoldingPolicies(t *testing.T) {
	r := result{
		refusals: []lifecycle.Refusal{{Policy: "a"}, {Gate: "KeepsQuorum"}, {Policy: "a"}},
		held:     &heldDeletion{refusals: []lifecycle.Refusal{{Policy: "b"}}},
	}
	if diff := cmp.Diff([]string{"a", "b"}, r.holding()); diff != "" {
		t.Error(diff)
	}
}
