package preview_test

import (
	"strings"
	"testing"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

func steps(n int, class lifecycle.Class) []preview.Step {
	all := make([]preview.Step, n)
	for i := range all {
		all[i].Name, all[i].Target, all[i].Class = "RemoveMember", "etcd-demo-"+string(rune('0'+i)), class
	}
	return all
}

func TestBrief(t *testing.T) {
	awaited := steps(1, "")
	awaited[0].IsWait = true
	cases := map[string]struct {
		reason string
		plan   preview.Plan
		want   string
	}{
		"Nothing": {"no step, no word", preview.Plan{Outcome: lifecycle.OutcomeSettled}, ""},
		"Waiting": {"to wait is to do nothing", preview.Plan{Steps: awaited, Outcome: lifecycle.OutcomeSettled}, ""},
		"One":     {"one step is no steps", preview.Plan{Steps: steps(1, ""), Outcome: lifecycle.OutcomeSettled}, "Governor will take 1 step: RemoveMember etcd-demo-0."},
		"Harm":    {"what can hurt is counted", preview.Plan{Steps: steps(2, lifecycle.ClassDisruptive), Outcome: lifecycle.OutcomeSettled}, "Governor will take 2 steps: RemoveMember etcd-demo-0, RemoveMember etcd-demo-1 (2 disruptive)."},
		"Many":    {"not all are named", preview.Plan{Steps: steps(9, ""), Outcome: lifecycle.OutcomeSettled}, "Governor will take 9 steps: RemoveMember etcd-demo-0, RemoveMember etcd-demo-1, RemoveMember etcd-demo-2, RemoveMember etcd-demo-3 and 5 more."},
		"Blocked": {"the summary names the reason", preview.Plan{Outcome: lifecycle.OutcomeBlocked, Message: "Version 9 is unknown."}, "Governor will do nothing; then it stops: Version 9 is unknown."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.plan.Summary(); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
	long := preview.Plan{Steps: steps(9, lifecycle.ClassIrreversible), Outcome: lifecycle.OutcomeBlocked, Message: strings.Repeat("very long ", 50)}
	if got := long.Summary(); len(got) > 256 {
		t.Errorf("%d characters: %s", len(got), got)
	}
}
