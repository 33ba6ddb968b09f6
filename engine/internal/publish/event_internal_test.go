package publish

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

func create(kind string) apply.Change {
	return apply.Change{Verb: apply.VerbCreated, Kind: kind, Name: "m"}
}

func configure(wished bool) apply.Change {
	return apply.Change{Verb: apply.VerbConfigured, Kind: "Deployment", Name: "m", Fields: []string{"spec.replicas"}, Redeclared: wished}
}

func TestAnnouncement(t *testing.T) {
	const normal, warning = corev1.EventTypeNormal, corev1.EventTypeWarning
	rolling := lifecycle.WaitFor(lifecycle.Step{Reason: "RollingOut", Message: "Waiting for pods."}, time.Time{})
	blocked := lifecycle.Block("NameTaken", "It is taken.")
	told := []metav1.Condition{{Type: lifecycle.ConditionReady, Status: metav1.ConditionFalse, Reason: "RollingOut"}}
	step := &Taken{Step: lifecycle.Step{Name: "Add", Reason: "TooFew", Message: "One more."}}
	cases := map[string]struct {
		reason string
		report Result
		want   Event
	}{
		"New": {
			"what was made and what comes next are one event",
			Result{Decision: rolling, Done: []apply.Change{create("Service"), create("Deployment")}},
			Event{normal, "RollingOut", "Apply", "Created Service m, Deployment m. Waiting for pods."},
		},
		"Decided": {"a decision alone", Result{Decision: rolling}, Event{normal, "RollingOut", "Decide", "Waiting for pods."}},
		"Same": {
			"what was told is not told again",
			Result{Decision: rolling, Before: &enginetest.Object{Status: enginetest.Status{Conditions: told}}}, Event{Kind: normal, Action: "Decide"},
		},
		"Applied": {
			"a change that changes no decision",
			Result{Decision: rolling, Before: &enginetest.Object{Status: enginetest.Status{Conditions: told}}, Done: []apply.Change{configure(false)}},
			Event{normal, "Applied", "Apply", "Configured Deployment m (spec.replicas)."},
		},
		"Repaired": {
			"the change of another writer is reverted",
			Result{Decision: rolling, Before: &enginetest.Object{Status: enginetest.Status{Conditions: told}}, Done: []apply.Change{configure(false)}, Drift: true},
			Event{normal, "Repaired", "Repair", "Configured Deployment m (spec.replicas)."},
		},
		"Wished": {
			"no other writer changed it: the observed state requires it, such as an endpoint to be removed",
			Result{Decision: rolling, Before: &enginetest.Object{Status: enginetest.Status{Conditions: told}}, Done: []apply.Change{configure(true)}, Drift: true},
			Event{normal, "Applied", "Apply", "Configured Deployment m (spec.replicas)."},
		},
		"Blocked": {
			"a person must act, and part of the work is done",
			Result{Decision: blocked, Done: []apply.Change{create("Service")}},
			Event{warning, "NameTaken", "Apply", "Created Service m. It is taken."},
		},
		"Failed": {
			"a failure is a warning", Result{Decision: lifecycle.RetryIn(0, "APIError", "It failed."), Cause: errors.New("x")},
			Event{warning, "APIError", "Decide", "It failed."},
		},
		"Step": {
			"a step is reported even if the same step was taken before",
			Result{Decision: lifecycle.Proceed(step.Step), Before: &enginetest.Object{Status: enginetest.Status{Conditions: told}}, Taken: step, Done: []apply.Change{create("Service")}},
			Event{normal, "TooFew", "Add", "Created Service m. One more."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.report.Before == nil {
				c.report.Before = &enginetest.Object{}
			}
			if diff := cmp.Diff(c.want, c.report.Event(), cmp.AllowUnexported(Event{})); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestASentenceOfManyChangesIsShort(t *testing.T) {
	var all []apply.Change
	for _, kind := range strings.Split("ABCDEFGH", "") {
		all = append(all, create(kind))
	}
	all[1].Verb = apply.VerbPruned
	if got, want := sentence(all), "Created A m. Pruned B m. Created C m, D m, E m, F m and 2 more."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
