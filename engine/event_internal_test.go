package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

func create(kind string) apply.Change {
	return apply.Change{Verb: apply.Created, Kind: kind, Name: "m"}
}

func configure(wished bool) apply.Change {
	return apply.Change{Verb: apply.Configured, Kind: "Deployment", Name: "m", Fields: []string{"spec.replicas"}, Redeclared: wished}
}

func TestAnnouncement(t *testing.T) {
	const normal, warning = corev1.EventTypeNormal, corev1.EventTypeWarning
	rolling := lifecycle.WaitFor(lifecycle.Step{Reason: "RollingOut", Message: "Waiting for pods."}, time.Time{})
	blocked := lifecycle.Block("NameTaken", "It is taken.")
	told := []metav1.Condition{{Type: lifecycle.ConditionReady, Status: metav1.ConditionFalse, Reason: "RollingOut"}}
	step := &stepResult{step: lifecycle.Step{Name: "Add", Reason: "TooFew", Message: "One more."}}
	cases := map[string]struct {
		reason string
		report result
		want   announcement
	}{
		"New": {
			"what was made and what comes next are one event",
			result{decision: rolling, done: []apply.Change{create("Service"), create("Deployment")}},
			announcement{normal, "RollingOut", "Provide", "Created Service m, Deployment m. Waiting for pods."},
		},
		"Decided": {"a decision alone", result{decision: rolling}, announcement{normal, "RollingOut", "Decide", "Waiting for pods."}},
		"Same": {
			"what was told is not told again",
			result{decision: rolling, before: &fake{conditions: told}}, announcement{kind: normal, action: "Decide"},
		},
		"Provided": {
			"a change that changes no decision",
			result{decision: rolling, before: &fake{conditions: told}, done: []apply.Change{configure(false)}},
			announcement{normal, "Provided", "Provide", "Configured Deployment m (spec.replicas)."},
		},
		"Repaired": {
			"the change of another writer is reverted",
			result{decision: rolling, before: &fake{conditions: told}, done: []apply.Change{configure(false)}, drift: true},
			announcement{normal, "Repaired", "Repair", "Configured Deployment m (spec.replicas)."},
		},
		"Wished": {
			"no other writer changed it: the observed state requires it, such as an endpoint to be removed",
			result{decision: rolling, before: &fake{conditions: told}, done: []apply.Change{configure(true)}, drift: true},
			announcement{normal, "Provided", "Provide", "Configured Deployment m (spec.replicas)."},
		},
		"Blocked": {
			"a person must act, and part of the work is done",
			result{decision: blocked, done: []apply.Change{create("Service")}},
			announcement{warning, "NameTaken", "Provide", "Created Service m. It is taken."},
		},
		"Failed": {
			"a failure is a warning", result{decision: lifecycle.RetryIn(0, "APIError", "It failed."), cause: errors.New("x")},
			announcement{warning, "APIError", "Decide", "It failed."},
		},
		"Step": {
			"a step is reported even if the same step was taken before",
			result{decision: lifecycle.Proceed(step.step), before: &fake{conditions: told}, taken: step, done: []apply.Change{create("Service")}},
			announcement{normal, "TooFew", "Add", "Created Service m. One more."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.report.before == nil {
				c.report.before = &fake{}
			}
			if diff := cmp.Diff(c.want, c.report.announcement(), cmp.AllowUnexported(announcement{})); diff != "" {
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
	all[1].Verb = apply.Pruned
	if got, want := sentence(all), "Created A m. Pruned B m. Created C m, D m, E m, F m and 2 more."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
