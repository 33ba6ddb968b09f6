package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
)

// While a step is stuck, later repairs go on, and nothing that may count on the step.
func TestPast(t *testing.T) {
	step := func(name string, intent lifecycle.Intent) lifecycle.Decision {
		return lifecycle.Proceed(lifecycle.Step{Name: name, Intent: intent, Reason: name})
	}
	repair := func(name string) lifecycle.Decision { return step(name, lifecycle.IntentRepair) }
	label, replace := repair("Label"), repair("Replace")
	grow, add := step("Grow", lifecycle.IntentChange), step("Add", lifecycle.IntentChange)
	final := repair("Upgrade")
	final.Step.Class = lifecycle.ClassIrreversible
	drift := repair("Restore")
	drift.Drift = &lifecycle.Drift{}
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "Ready", Reason: "Ready"}, time.Time{})
	cases := map[string]struct {
		reason string
		stuck  string
		rules  []lifecycle.Decision
		want   string
	}{
		"NotStuck":     {"a step that works is taken", "Replace", []lifecycle.Decision{label, replace}, "Label"},
		"Repair":       {"a later repair goes on", "Label", []lifecycle.Decision{{}, label, {}, replace}, "Replace"},
		"StuckChange":  {"also past a change that is stuck", "Grow", []lifecycle.Decision{grow, replace}, "Replace"},
		"Change":       {"a change does not", "Label", []lifecycle.Decision{label, grow}, ""},
		"PastChange":   {"a repair behind it does", "Label", []lifecycle.Decision{label, grow, replace}, "Replace"},
		"Another":      {"but not while another change has not ended", "Grow", []lifecycle.Decision{grow, add}, ""},
		"Unfinished":   {"nor behind a repair", "Label", []lifecycle.Decision{label, step("Label", lifecycle.IntentChange), add, replace}, "Replace"},
		"Needed":       {"a change that restores what was lost is a repair", "Label", []lifecycle.Decision{label, add, replace}, "Add"},
		"Irreversible": {"what has no inverse waits for a person", "Label", []lifecycle.Decision{label, final}, ""},
		"Wait":         {"nothing goes before a wait ends", "Label", []lifecycle.Decision{label, wait, replace}, "Ready"},
		"Block":        {"nor past a block", "Label", []lifecycle.Decision{label, lifecycle.Block("Lost", ""), replace}, ""},
		"Both":         {"two stuck steps hold nothing else", "Label", []lifecycle.Decision{label, label, replace}, "Replace"},
		"Drift":        {"nor does one that repairs drift", "Restore", []lifecycle.Decision{drift, replace}, "Replace"},
		"Rule":         {"the other decisions of the same rule come next", "Label", []lifecycle.Decision{lifecycle.Any(label, add), replace}, "Add"},
		"Settled":      {"nothing is behind the end", "Label", nil, "AsDeclared"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stuck := func(s lifecycle.Step) bool { return s.Name == c.stuck }
			got := lifecycle.First(c.rules...).Past(stuck, func(s lifecycle.Step) bool { return s.Name == "Add" })
			if got.Reason != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got.Reason, c.want)
			}
		})
	}
}

// A stuck repair is not taken instead of a held change.
func TestPastLeavesNoStuckStepBehind(t *testing.T) {
	step := func(name string, intent lifecycle.Intent) lifecycle.Decision {
		return lifecycle.Proceed(lifecycle.Step{Name: name, Intent: intent})
	}
	d := lifecycle.First(step("Grow", ""), step("Label", lifecycle.IntentRepair), step("Replace", lifecycle.IntentRepair))
	d = d.Past(func(s lifecycle.Step) bool { return s.Name == "Label" }, nil)
	if next := d.Instead(nil); d.Step.Name != "Grow" || next.Step.Name != "Replace" {
		t.Errorf("got %s, and %s while it is held", d.Step, next.Step)
	}
}

// A step knows all that the later rules want, in order, up to the first that wants no step.
func TestBehind(t *testing.T) {
	step := func(name string) lifecycle.Decision {
		return lifecycle.Proceed(lifecycle.Step{Name: name, Intent: lifecycle.IntentRepair})
	}
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "wait"}, time.Time{})
	cases := map[string]struct {
		reason string
		d      lifecycle.Decision
		want   []string
	}{
		"Nested": {"a rule may have several", lifecycle.First(lifecycle.Any(step("a"), step("b")), lifecycle.Any(lifecycle.Decision{}, step("c"), step("d")), step("e")), []string{"b", "c", "d", "e"}},
		"Wait":   {"a wait is the last, also within a rule", lifecycle.First(step("a"), lifecycle.First(step("b"), wait), step("c")), []string{"b", "wait"}},
		"None":   {"a wait has nothing behind it", lifecycle.First(wait, step("a")), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, next := range c.d.Behind {
				if got = append(got, next.Step.Name); len(next.Behind) > 0 {
					t.Errorf("%s has %v behind it", next.Step, next.Behind)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
			for _, name := range c.want {
				if name != "wait" && !c.d.Wants(lifecycle.Step{Name: name}) {
					t.Errorf("%s is not wanted", name)
				}
			}
			if c.d.Wants(lifecycle.Step{Name: "wait"}) {
				t.Error("a wait is no step to take")
			}
		})
	}
}
