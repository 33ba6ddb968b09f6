package memory

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// A story has one decision a turn. "Fault:Remove" is a step with its cause, "?Ready" a wait
// that the planner takes for a wish, "." the end.
func caused(word string) lifecycle.Decision {
	if word == "." {
		return lifecycle.First()
	}
	if name, waits := strings.CutPrefix(word, "?"); waits {
		return lifecycle.Decision{Outcome: lifecycle.OutcomeWait, Step: lifecycle.Step{Name: name, Cause: lifecycle.CauseSpecChange}}
	}
	cause, name, _ := strings.Cut(word, ":")
	return lifecycle.Proceed(lifecycle.Step{Name: name, Cause: lifecycle.Cause(cause)})
}

func TestCauses(t *testing.T) {
	cases := map[string]struct {
		reason  string
		repairs string // the steps that the spec which worked last needs, too
		story   string
		want    string
	}{
		"Replaced": {"what follows from a fault has it for its cause", "Add CaughtUp Promote",
			"Fault:Remove SpecChange:Add Fault:Start ?CaughtUp SpecChange:Promote .", "Fault Fault Fault Fault Fault"},
		"Drift":  {"and so has what follows from drift", "Add", "Drift:Remove SpecChange:Add .", "Drift Drift"},
		"Wished": {"a change has itself", "", "SpecChange:Add SpecChange:Promote .", "SpecChange SpecChange"},
		"Within": {"a fault in the middle of a change does not hide the change", "",
			"SpecChange:Add Fault:Remove SpecChange:Add .", "SpecChange Fault SpecChange"},
		"Through": {"a change in the middle of a repair does not hide the fault", "Add",
			"Fault:Remove SpecChange:Add SpecChange:Restart .", "Fault Fault SpecChange"},
		"Later": {"what comes after all was well is another story", "Add",
			"Fault:Remove SpecChange:Add . SpecChange:Restart", "Fault Fault SpecChange"},
		"None":    {"a step without a cause gets none", "Tidy", "Fault:Remove :Tidy .", "Fault "},
		"Outside": {"a change of what the operator renders follows from no fault", "Restart", "SpecChange:Restart .", "SpecChange"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all Causes
			var got []string
			for word := range strings.FieldsSeq(c.story) {
				d := all.Trace(types.NamespacedName{Name: "a"}, caused(word), func(s lifecycle.Step) bool { return slices.Contains(strings.Fields(c.repairs), s.Name) },
					func() lifecycle.Cause { t.Error("an operator that saw it all reads no history"); return "" })
				if d.Outcome != lifecycle.OutcomeSettled {
					got = append(got, string(d.Step.Cause))
				}
			}
			if said := strings.Join(got, " "); said != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, said, c.want)
			}
		})
	}
}

// A repair that an earlier operator left unfinished goes on as a repair.
func TestCausesAfterARestart(t *testing.T) {
	cases := map[string]struct {
		reason     string
		unfinished bool
		recorded   lifecycle.Cause
		story      string
		want       string
	}{
		"Repair":    {"what the earlier operator began", true, lifecycle.CauseFault, "SpecChange:Add ?CaughtUp SpecChange:Promote", "Fault Fault Fault"},
		"Settled":   {"all was well before: nothing was left", false, lifecycle.CauseFault, "SpecChange:Add", "SpecChange"},
		"Change":    {"a change was under way", true, lifecycle.CauseSpecChange, "SpecChange:Add", "SpecChange"},
		"Unknown":   {"no history can be read", true, "", "SpecChange:Add", "SpecChange"},
		"Another":   {"what happens now is newer than the history", true, lifecycle.CauseFault, "Drift:Remove SpecChange:Add", "Drift Drift"},
		"Finished":  {"what comes after the end is another story", true, lifecycle.CauseFault, "SpecChange:Add . SpecChange:Add", "Fault SpecChange"},
		"Unrelated": {"what repairs nothing is a change", true, lifecycle.CauseFault, "SpecChange:Grow SpecChange:Add", "SpecChange Fault"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all Causes
			var got []string
			key := types.NamespacedName{Name: "a"}
			for word := range strings.FieldsSeq(c.story) {
				all.Meet(key, c.unfinished)
				d := all.Trace(key, caused(word), func(s lifecycle.Step) bool { return s.Name != "Grow" }, func() lifecycle.Cause { return c.recorded })
				if d.Outcome != lifecycle.OutcomeSettled {
					got = append(got, string(d.Step.Cause))
				}
			}
			if said := strings.Join(got, " "); said != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, said, c.want)
			}
		})
	}
}
