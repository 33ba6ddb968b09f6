package memory

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// A story has one decision a second. "+Add" is a step, "Ready" a wait, "!Mend" a step
// of repair, "~" a retry, "#" a block, "|" a held step, "." the end.
func decision(word string) (d lifecycle.Decision, acted bool) {
	step := lifecycle.Step{Name: strings.TrimLeft(word, "+!|")}
	switch word[0] {
	case '+':
		return lifecycle.Proceed(step), true
	case '!':
		step.Intent = lifecycle.IntentRepair
		return lifecycle.Proceed(step), true
	case '|':
		return lifecycle.Held(step, lifecycle.Refusal{}), false
	case '~':
		return lifecycle.RetryIn(0, "Later", ""), false
	case '#':
		return lifecycle.Block("Stuck", ""), false
	case '.':
		return lifecycle.First(), false
	}
	return lifecycle.WaitFor(step, time.Time{}), false
}

func TestWaits(t *testing.T) {
	cases := map[string]struct{ reason, story, want string }{
		"Once":     {"what follows a step is measured", "+Add Ready Ready .", "Ready 2s"},
		"Two":      {"one thing after the other", "+Add Up Ready .", "Up 1s, Ready 1s"},
		"Next":     {"the next step ends it too", "+Add Ready +Promote .", "Ready 1s"},
		"Told":     {"it is reported once", "+Add Ready . . .", "Ready 1s"},
		"NoStep":   {"a wait without a step belongs to no step", "Ready Ready .", ""},
		"Later":    {"after the end nothing is measured", "+Add . Ready .", ""},
		"Retry":    {"a turn that saw nothing ends no wait", "+Add Ready ~ Ready .", "Ready 3s"},
		"Blocked":  {"what came to nothing took no usual time", "+Add Ready # .", ""},
		"Repaired": {"nor did what had to be repaired", "+Add Ready !Mend .", ""},
		"Held":     {"a gate is no event that comes by itself", "+Add |Remove .", ""},
		"ToAndFro": {"a restless world fills no history", "+Add " + strings.Repeat("A B ", 20) + ".", strings.TrimSuffix(strings.Repeat("A 1s, B 1s, ", 8), ", ")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var w Waits
			var told []string
			for i, word := range strings.Fields(c.story) {
				d, acted := decision(word)
				for _, a := range w.Note(types.NamespacedName{}, d, acted, time.Unix(int64(i), 0)) {
					told = append(told, a.Step.Name+" "+a.Duration.String())
				}
			}
			if got := strings.Join(told, ", "); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestWaitsOfWhatIsGoneAreForgotten(t *testing.T) {
	var w Waits
	w.Note(types.NamespacedName{}, lifecycle.Proceed(lifecycle.Step{Name: "Add"}), true, time.Time{})
	if w.Forget(types.NamespacedName{}); len(w.open) != 0 {
		t.Errorf("still %v", w.open)
	}
}
