package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	long := strings.Repeat("a line that fills the tail of the log\n", 2000) + "the end\n"
	for name, test := range map[string]struct {
		content string
		n       int
		want    []string
	}{
		"short":         {"one\ntwo\n", 5, []string{"one", "two"}},
		"cut":           {"one\ntwo\nthree\n", 2, []string{"two", "three"}},
		"empty":         {"", 3, []string{""}},
		"long":          {long, 1, []string{"the end"}},
		"no line break": {"one\ntwo", 1, []string{"two"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := LastLines(file, test.n); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := LastLines("/no/such/file", 3); len(got) != 1 || !strings.Contains(got[0], "no such file") {
		t.Errorf("a log that cannot be read must say why, got %q", got)
	}
}
