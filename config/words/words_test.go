// Package words keeps words out of comments, messages and docs that slow a reader down:
// archaic forms, and pronouns where a sentence needs a subject with a name.
package words

import (
	"bytes"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the present counts into allowed.txt")

// root is the repository, and allowed the file with the words that each folder still has.
const (
	root    = "../.."
	allowed = "allowed.txt"
)

// refused are the words. A clause begins after a full stop, a semicolon or a colon.
var refused = regexp.MustCompile(`(?i)\b(whoever|anew|nobody|somebody|ever later|be it|(?:is|are) told|foretold|takes? leave)\b|(?:^|[.;:] )who\b`)

// TestNoFolderHasMoreRefusedWords compares each folder with allowed.txt. The counts only go
// down: after an improvement, run go test ./config/words -update.
func TestNoFolderHasMoreRefusedWords(t *testing.T) {
	found := map[string][]string{}
	for _, file := range tracked(t) {
		dir := path.Dir(file)
		found[dir] = append(found[dir], inFile(t, file)...)
	}
	if *update {
		write(t, found)
		return
	}
	limits := read(t)
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		if n := len(found[dir]); n > limits[dir] {
			t.Errorf("%s has %d refused words and may have %d; write them in plain English:\n  %s", dir, n, limits[dir], strings.Join(found[dir], "\n  "))
		}
	}
}

func TestRefusedWords(t *testing.T) {
	for text, want := range map[string]int{
		"The pod is made anew.":                          1,
		"Who reads the Secret must restart.":             1,
		"It restarts; who is last leads.":                1,
		"The user is told, and nobody acts.":             2,
		"A user who reads the Secret sees a renewed one": 0,
	} {
		if got := len(refused.FindAllString(text, -1)); got != want {
			t.Errorf("%q has %d refused words, want %d", text, got, want)
		}
	}
}

func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.go", "*.md", "*.yaml", "*.yml", "*.tmpl", "*Makefile").Output()
	if err != nil {
		t.Skipf("not a git clone: %v", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(f string) bool { return path.Dir(f) == "config/words" })
}

func inFile(t *testing.T, file string) (found []string) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(root, file))
	if os.IsNotExist(err) {
		return nil // deleted, and not committed yet
	} else if err != nil {
		t.Fatal(err)
	}
	for line, text := range texts(file, src) {
		for _, word := range refused.FindAllString(text, -1) {
			found = append(found, fmt.Sprintf("%s:%d: %s", file, line, strings.TrimSpace(word)))
		}
	}
	slices.Sort(found)
	return found
}

// texts are the lines of a document, or the comments and strings of a Go file.
func texts(file string, src []byte) map[int]string {
	all := map[int]string{}
	if !strings.HasSuffix(file, ".go") {
		for i, line := range bytes.Split(src, []byte("\n")) {
			all[i+1] = string(line)
		}
		return all
	}
	files := token.NewFileSet()
	f := files.AddFile(file, -1, len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, scanner.ScanComments)
	for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
		if tok == token.COMMENT || tok == token.STRING {
			all[f.Line(pos)] += strings.TrimLeft(text, "/ \"`")
		}
	}
	return all
}

func read(t *testing.T) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(allowed)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		if limits[fields[0]], err = strconv.Atoi(fields[1]); err != nil {
			t.Fatalf("%s: %v", allowed, err)
		}
	}
	return limits
}

func write(t *testing.T, found map[string][]string) {
	t.Helper()
	var b strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		if n := len(found[dir]); n > 0 {
			fmt.Fprintln(&b, dir, n)
		}
	}
	if err := os.WriteFile(allowed, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
