package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
)

// Repairs of drift that may stay give way to the later rules, whatever those are.
func TestSpareDrift(t *testing.T) {
	step := func(name string) lifecycle.Decision { return lifecycle.Proceed(lifecycle.Step{Name: name}) }
	harmless := func(name string, next ...lifecycle.Decision) lifecycle.Decision {
		d := step(name)
		d.Drift = &lifecycle.Drift{Kind: "StatefulSet", Name: name}
		return lifecycle.Any(append([]lifecycle.Decision{d}, next...)...)
	}
	cases := map[string]struct {
		reason string
		rules  []lifecycle.Decision
		taken  string
		spared []string
		step   string
	}{
		"None":     {"a step without drift is taken", []lifecycle.Decision{step("a"), harmless("b")}, "a", nil, "a"},
		"Change":   {"a later change goes on", []lifecycle.Decision{harmless("a"), {}, step("b")}, "a", []string{"a"}, "b"},
		"Settled":  {"without another rule nothing is left to do", []lifecycle.Decision{harmless("a")}, "a", []string{"a"}, ""},
		"Several":  {"all drift of one rule and of others is reported", []lifecycle.Decision{harmless("a", harmless("b")), harmless("c"), step("d")}, "a", []string{"a", "b", "c"}, "d"},
		"Earlier":  {"an earlier wait comes first", []lifecycle.Decision{lifecycle.RetryIn(1, "R", ""), harmless("a")}, "", nil, ""},
		"Unspared": {"a needed repair of one rule ends the chain", []lifecycle.Decision{harmless("a", step("b")), step("c")}, "a", []string{"a"}, "b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := lifecycle.First(c.rules...)
			rest, drifts := d.SpareDrift()
			var spared []string
			for _, drift := range drifts {
				spared = append(spared, drift.Name)
			}
			if d.Step.Name != c.taken || rest.Step.Name != c.step {
				t.Errorf("%s: it takes %q, and without drift %q", c.reason, d.Step.Name, rest.Step.Name)
			}
			if diff := cmp.Diff(c.spared, spared); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
