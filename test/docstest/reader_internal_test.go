package docstest

import "testing"

func TestPatched(t *testing.T) {
	cases := map[string]struct {
		reason, content, diff, want string
		fails                       bool
	}{
		"Lines":   {"lines with a context", "a\nb\nc\n", " a\n-b\n+x\n+y\n", "a\nx\ny\nc\n", false},
		"Part":    {"a part of a line", "f(one, two)\n", "-one, two\n+both\n", "f(both)\n", false},
		"Hunks":   {"several hunks", "a\nb\n", "-a\n+x\n@@\n-b\n+y\n", "x\ny\n", false},
		"Missing": {"a missing text", "a\n", "-b\n+c\n", "", true},
		"Twice":   {"a text that occurs twice", "a\na\n", "-a\n+c\n", "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := patched(c.content, c.diff)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%s: %q, %v", c.reason, got, err)
			}
		})
	}
}

func TestShows(t *testing.T) {
	output := "NAME   SIZE\nmine   2   True\n"
	for shown, want := range map[string]bool{
		"NAME SIZE\nmine 2": true, "NAME … True\n": true, "mine … 3": false, "True … NAME": false, "mine 2 T.ue": false,
	} {
		if got := shows(shown, output); got != want {
			t.Errorf("%q: %v", shown, got)
		}
	}
}
