package docstest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// identifier is a name of Go in a code span, perhaps with its package or type.
var identifier = regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Za-z]+)`")

// Every rule, gate and test that docs/safety.md names exists: a promise without them is none.
func TestSafetyNamesWhatExists(t *testing.T) {
	const root = "../.."
	raw, err := os.ReadFile(filepath.Join(root, "docs/safety.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := source(t, root)
	names := identifier.FindAllStringSubmatch(string(raw), -1)
	if len(names) < 50 {
		t.Errorf("docs/safety.md names %d things", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile(`\b` + name[1] + `\b`).MatchString(code) {
			t.Errorf("docs/safety.md names %s, which does not exist", name[0])
		}
	}
}

// source is all Go code and all manifests.
func source(t *testing.T, root string) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".go" && ext != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		code.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}
