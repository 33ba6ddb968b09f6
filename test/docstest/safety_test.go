package docstest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
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
	known := identifiers(t, root)
	names := identifier.FindAllStringSubmatch(string(raw), -1)
	if len(names) < 50 {
		t.Errorf("docs/safety.md names %d things", len(names))
	}
	for _, name := range names {
		if !known[name[1]] {
			t.Errorf("docs/safety.md names %s, which does not exist", name[0])
		}
	}
}

// identifiers are the words of all Go code and all manifests.
func identifiers(t *testing.T, root string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path == filepath.Join(root, "build") {
			return filepath.SkipDir // it may have the code of another commit
		}
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".go" && ext != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		for word := range strings.FieldsFuncSeq(string(raw), func(r rune) bool { return !unicode.IsLetter(r) }) {
			known[word] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
