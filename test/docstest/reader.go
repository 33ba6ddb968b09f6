package docstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Reader follows the guide in a temporary directory that contains a clone named governor.
type Reader struct {
	// Cluster selects the blocks for readers with a cluster, instead of the blocks for
	// tests without one.
	Cluster bool
	// Env is added to the environment of all commands.
	Env []string

	dir, state string
	output     string // output of the last commands
	skipped    bool   // the last commands were skipped
	undo       map[string]string
}

// NewReader returns a reader with a clone of Governor.
func NewReader(t *testing.T, clone string) *Reader {
	t.Helper()
	r := &Reader{dir: t.TempDir(), undo: map[string]string{}}
	r.state = filepath.Join(t.TempDir(), "state")
	if err := os.Symlink(clone, filepath.Join(r.dir, "governor")); err != nil {
		t.Fatal(err)
	}
	return r
}

// Follow tests the blocks in their order. A wrong output fails the test; a block that
// cannot run ends it.
func (r *Reader) Follow(t *testing.T, blocks []Block) {
	t.Helper()
	for _, b := range blocks {
		err := r.do(t, b)
		switch {
		case errors.Is(err, errOutput):
			t.Errorf("%s: %v", b, err)
		case err != nil:
			t.Fatalf("%s: %v", b, err)
		}
	}
}

// errOutput reports that the output differs from the page.
var errOutput = errors.New("the guide shows another output")

func (r *Reader) do(t *testing.T, b Block) error {
	t.Helper()
	switch b.Runner() {
	case "commands":
		return r.run(t, b)
	case "output":
		return r.compare(b)
	case "edit":
		return r.edit(b)
	case "quote", "kit": // tested where the text comes from
		return nil
	}
	return fmt.Errorf("the block has no test")
}

// run runs the commands in a shell that continues with the directory and variables of the
// last one.
func (r *Reader) run(t *testing.T, b Block) error {
	t.Helper()
	if r.skipped = b.Has("cluster") && !r.Cluster || b.Has("test") && r.Cluster; r.skipped {
		return nil
	}
	script := fmt.Sprintf("cd %q; if test -f %[2]q; then . %[2]q; fi; set -e -o pipefail\n%s\nexport -p >%[2]q; echo \"cd $PWD\" >>%[2]q\n", r.dir, r.state, b.Text)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), r.Env...)
	out, err := cmd.CombinedOutput()
	r.output = string(out)
	t.Logf("%s:\n%s\n%s", b, b.Text, out)
	exit := "0"
	if cmd.ProcessState != nil {
		exit = fmt.Sprint(cmd.ProcessState.ExitCode())
	}
	if want := b.Value("exit"); exit != want && (want != "" || err != nil) {
		return fmt.Errorf("exit %s, %w:\n%s\n%s", exit, err, b.Text, out)
	}
	return nil
}

// compare checks the output against the block, ignoring whitespace, and reverts edits.
func (r *Reader) compare(b Block) error {
	if r.skipped {
		return nil
	}
	for path, content := range r.undo {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	clear(r.undo)
	if !shows(b.Text, r.output) {
		return fmt.Errorf("%w:\n%s\nthe output is:\n%s", errOutput, b.Text, r.output)
	}
	return nil
}

// shows reports whether the output contains the shown text, in which … matches anything.
func shows(shown, output string) bool {
	var parts []string
	for part := range strings.SplitSeq(strings.Join(strings.Fields(shown), " "), "…") {
		parts = append(parts, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(strings.Join(parts, ".*")).MatchString(strings.Join(strings.Fields(output), " "))
}

// edit creates the file, or changes it.
func (r *Reader) edit(b Block) error {
	path := filepath.Join(r.dir, "pond", b.File())
	raw, err := os.ReadFile(path)
	if b.Language == "go" {
		if err == nil {
			return fmt.Errorf("%s exists already", b.File())
		}
		return os.WriteFile(path, []byte(b.Text), 0o600)
	}
	if err != nil {
		return err
	}
	changed, err := patched(string(raw), b.Text)
	if err != nil {
		return err
	}
	if b.Has("undo") {
		r.undo[path] = string(raw)
	}
	return os.WriteFile(path, []byte(changed), 0o600)
}

// patched applies hunks without line numbers. The old text of a hunk must occur exactly
// once. A hunk of changed lines without context may match parts of lines.
func patched(content, diff string) (string, error) {
	for hunk := range strings.SplitSeq(diff, "@@\n") {
		var before, after strings.Builder
		for line := range strings.Lines(hunk) {
			mark, text := line[:1], line[1:]
			if mark == "\n" {
				mark, text = " ", "\n" // editors cut spaces from the ends of lines
			}
			if mark != "+" {
				before.WriteString(text)
			}
			if mark != "-" {
				after.WriteString(text)
			}
		}
		was, is := before.String(), after.String()
		if !strings.Contains(hunk, "\n ") && !strings.HasPrefix(hunk, " ") {
			was, is = strings.TrimSuffix(was, "\n"), strings.TrimSuffix(is, "\n")
		}
		if n := strings.Count(content, was); n != 1 {
			return "", fmt.Errorf("the text occurs %d times, want once:\n%s", n, was)
		}
		content = strings.Replace(content, was, is, 1)
	}
	return content, nil
}
