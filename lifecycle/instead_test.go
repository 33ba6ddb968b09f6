package lifecycle_test

import (
	"testing"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// While a wish is held, only what brings something back goes on, and nothing that comes after a wait.
func TestInstead(t *testing.T) {
	step := func(name string, intent lifecycle.Intent) lifecycle.Decision {
		return lifecycle.Proceed(lifecycle.Step{Name: name, Intent: intent, Reason: name})
	}
	grow, add, replace := step("Grow", lifecycle.IntentChange), step("Add", lifecycle.IntentChange), step("Replace", lifecycle.IntentRepair)
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "Ready", Reason: "Ready"}, time.Time{})
	cases := map[string]struct {
		reason string
		rules  []lifecycle.Decision
		want   string
	}{
		"Repair":      {"a repair goes on", []lifecycle.Decision{{}, grow, {}, replace}, "Replace"},
		"PastWishes":  {"also behind other wishes", []lifecycle.Decision{grow, grow, replace}, "Replace"},
		"Needed":      {"a wish that was needed before is one", []lifecycle.Decision{grow, add, replace}, "Add"},
		"Wait":        {"nothing goes before a wait ends", []lifecycle.Decision{grow, wait, replace}, "Ready"},
		"Block":       {"nor past a block", []lifecycle.Decision{grow, lifecycle.Block("Lost", ""), replace}, ""},
		"Wish":        {"another wish does not", []lifecycle.Decision{grow, grow}, ""},
		"RepairFirst": {"a repair itself is never replaced", []lifecycle.Decision{replace, replace}, ""},
		"Settled":     {"nothing is behind the end", nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.First(c.rules...).Instead(func(s lifecycle.Step) bool { return s.Name == "Add" })
			if got.Reason != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got.Reason, c.want)
			}
		})
	}
}
