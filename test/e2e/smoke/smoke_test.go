// Package smoke_test checks the list of the tests that the gate runs on a real cluster.
package smoke_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	line  = regexp.MustCompile(`^\^(Test\w+)\$(?:/\^\(?([\w|]+)\)?\$)?$`)
	tests = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	// parts are the names in the contract suites' lists.
	parts = regexp.MustCompile(`"(\w+)": +\w+`)
)

// A test that was renamed would otherwise leave the gate, and no one would notice.
func TestSmokeTestsExist(t *testing.T) {
	exist := names(t, tests, "../*_test.go")
	suites := names(t, parts, "../../../apps/*/contract/*.go")
	raw, err := os.ReadFile("tests.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(raw)) {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "#") {
			continue
		}
		found := line.FindStringSubmatch(text)
		if found == nil {
			t.Errorf("%q is neither ^TestX$ nor ^TestX$/^(PartA|PartB)$", text)
			continue
		}
		if !exist[found[1]] {
			t.Errorf("%s is in no file of test/e2e", found[1])
		}
		for part := range strings.SplitSeq(found[2], "|") {
			if part != "" && !suites[part] {
				t.Errorf("%s/%s is in no contract suite", found[1], part)
			}
		}
	}
}

// names are the first groups of what the expression matches in the files.
func names(t *testing.T, expression *regexp.Regexp, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	found := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range expression.FindAllStringSubmatch(string(raw), -1) {
			found[match[1]] = true
		}
	}
	return found
}
