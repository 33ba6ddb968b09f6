package stuck_test

import (
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/stuck"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func label(message string) lifecycle.Step {
	return lifecycle.Step{Name: "Label", Target: "m-0", Intent: lifecycle.IntentRepair, Message: message}
}

// A story has one attempt a second: "x" is refused, "e" fails, "+" succeeds, "p" succeeds after
// progress, "w" is a turn in which the world wants something else, "g" one after a change of the spec.
func story(t *testing.T, attempts string) (stuck.Steps, time.Time) {
	t.Helper()
	now, generation, message := noon, int64(1), "The label is missing."
	steps := stuck.Steps{}.Wanted(lifecycle.First(), generation)
	for _, what := range attempts {
		step := label(message)
		switch what {
		case 'x':
			steps = steps.Failed(step, lifecycle.Block("Forbidden", "No."), now)
		case 'e':
			steps = steps.Failed(step, lifecycle.RetryIn(0, "StepFailed", "No."), now)
		case '+':
			steps = steps.Done(step, now)
		case 'p':
			message += " Less of it."
			steps = steps.Done(label(message), now)
		case 'w':
			steps = steps.Wanted(lifecycle.First(), generation)
		case 'g':
			generation++
		}
		steps = steps.Wanted(lifecycle.Proceed(label(message)), generation)
		now = now.Add(time.Second)
	}
	return steps, now.Add(-time.Second)
}

func TestStuckSteps(t *testing.T) {
	cases := map[string]struct {
		reason, story, why string
	}{
		"Untried":  {"what was not tried is not stuck", "", ""},
		"Refused":  {"a refusal needs a person, at once", "x", "Forbidden"},
		"Failed":   {"an error may be gone at the next attempt", "ee", ""},
		"Failing":  {"one that stays does not", "eee", "StepFailed"},
		"Twice":    {"the world may be seen late", "++", ""},
		"NoEffect": {"half a minute is no delay", "++++++++", "StepHasNoEffect"},
		"Mixed":    {"the last attempt tells why", "++e", "StepFailed"},
		"Progress": {"each attempt had an effect", "pppp", ""},
		"Slower":   {"only what follows the effect counts", "++++++p++", ""},
		"Worked":   {"it had its effect, and is needed again", "++w++", ""},
		"Passed":   {"the world no longer wanted it", "xw", ""},
		"Edited":   {"a person changed the object", "xg", ""},
		"Works":    {"the API server accepts it now", "x+", ""},
		"ToAndFro": {"it had no effect either", "x++++++++", "StepHasNoEffect"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			steps, now := story(t, c.story)
			if got := steps.Why(label("")); got.Reason != c.why {
				t.Errorf("%s: got %q, want %q", c.reason, got.Reason, c.why)
			}
			if rests := steps.Rests(label(""), now); c.why != "" && !rests || rests == steps.Due(now).IsZero() {
				t.Errorf("it rests: %v, until %s", rests, steps.Due(now))
			}
		})
	}
}

// A step without effect is paced before it is reported.
func TestNoEffectIsPacedAtOnce(t *testing.T) {
	for attempts, rests := range map[string]bool{"++": false, "+++": true, "++++": true, "pppp": false} {
		steps, now := story(t, attempts)
		if steps.Rests(label(""), now) != rests || steps.Why(label("")).IsSet() {
			t.Errorf("%s: it rests until %s, and says %s", attempts, steps.Due(now), steps.Why(label("")))
		}
	}
}

// A stuck step is tried again ever more rarely, but forever.
func TestPausesGrow(t *testing.T) {
	for name, c := range map[string]struct {
		attempt func(stuck.Steps, time.Time) stuck.Steps
		longest time.Duration
	}{
		"Refused": {func(s stuck.Steps, now time.Time) stuck.Steps {
			return s.Failed(label(""), lifecycle.Block("Forbidden", ""), now)
		}, 30 * time.Second},
		"NoEffect": {func(s stuck.Steps, now time.Time) stuck.Steps { return s.Done(label(""), now) }, 5 * time.Minute},
	} {
		steps := c.attempt(c.attempt(stuck.Steps{}, noon), noon)
		now, tried := noon, 2
		var last time.Duration
		for now.Sub(noon) < 24*time.Hour {
			steps = c.attempt(steps, now)
			tried++
			next := steps.Due(now)
			if pause := next.Sub(now); pause < last || pause < time.Second || pause > c.longest {
				t.Fatalf("%s: after %s it rests for %s", name, last, pause)
			}
			last, now = next.Sub(now), next
			if steps.Rests(label(""), now) {
				t.Fatalf("%s: it does not end", name)
			}
		}
		if last != c.longest || tried > int(24*time.Hour/c.longest)+10 {
			t.Errorf("%s: %d attempts in a day, the last pause is %s", name, tried, last)
		}
	}
}

// A success between two failures does not make the attempts frequent again.
func TestPausesOutliveASuccess(t *testing.T) {
	if steps, now := story(t, "x+x"); steps.Due(now).Sub(now) != 2*time.Second {
		t.Errorf("it rests for %s", steps.Due(now).Sub(now))
	}
}

// Another target or other arguments are another step.
func TestStepsAreKnownByTheirArguments(t *testing.T) {
	other, another := label(""), label("")
	other.Target, another.Args = "m-1", map[string]string{"x": "1"}
	steps := stuck.Steps{}.Failed(label(""), lifecycle.Block("Forbidden", ""), noon)
	for _, s := range []lifecycle.Step{other, another} {
		if steps.Rests(s, noon) || steps.Why(s).IsSet() {
			t.Errorf("%s is stuck", s)
		}
	}
	steps = steps.Failed(other, lifecycle.Block("Forbidden", ""), noon.Add(500*time.Millisecond))
	if due := steps.Due(noon.Add(500 * time.Millisecond)); !due.Equal(noon.Add(time.Second)) {
		t.Errorf("the first is due at %s", due)
	}
}

func TestMessageNamesTheStep(t *testing.T) {
	steps, _ := story(t, "++++++++")
	if said := steps.Why(label("")); !strings.Contains(said.Message, "Label m-0") || !strings.Contains(said.Message, "The label is missing.") || said.Step.Name != "Label" {
		t.Errorf("it says %s", said)
	}
}
