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

// Reader follows the guide in a directory of their own, in which governor is the clone.
type Reader struct {
	// Cluster says that there is one, and that the commands which need one are run; those for tests are not, then.
	Cluster bool
	// Env is set for all commands, besides the process's own.
	Env []string

	dir, state string
	said       string // by the commands run last
	silent     bool   // the commands above were not for this reader
	undo       map[string]string
}

// NewReader returns a reader who has a clone of Governor, and nothing else.
func NewReader(t *testing.T, clone string) *Reader {
	t.Helper()
	r := &Reader{dir: t.TempDir(), undo: map[string]string{}}
	r.state = filepath.Join(t.TempDir(), "state")
	if err := os.Symlink(clone, filepath.Join(r.dir, "governor")); err != nil {
		t.Fatal(err)
	}
	return r
}

// Follow does what the blocks say, in their order. What is shown and was not said fails the test; what cannot be done
// ends it.
func (r *Reader) Follow(t *testing.T, blocks []Block) {
	t.Helper()
	for _, b := range blocks {
		err := r.do(t, b)
		switch {
		case errors.Is(err, errOther):
			t.Errorf("%s: %v", b, err)
		case err != nil:
			t.Fatalf("%s: %v", b, err)
		}
	}
}

// errOther says that something else was said than is shown.
var errOther = errors.New("the guide is wrong")

func (r *Reader) do(t *testing.T, b Block) error {
	t.Helper()
	switch b.Runner() {
	case "commands":
		return r.run(t, b)
	case "output":
		return r.compare(b)
	case "edit":
		return r.edit(b)
	case "quote", "kit": // compared where it comes from
		return nil
	}
	return fmt.Errorf("nobody knows what to do with it")
}

// run runs the commands in one shell that goes on where the last one ended, with its directory and variables.
func (r *Reader) run(t *testing.T, b Block) error {
	t.Helper()
	if r.silent = b.Has("cluster") && !r.Cluster || b.Has("test") && r.Cluster; r.silent {
		return nil
	}
	script := fmt.Sprintf("cd %q; if test -f %[2]q; then . %[2]q; fi; set -e -o pipefail\n%s\nexport -p >%[2]q; echo \"cd $PWD\" >>%[2]q\n", r.dir, r.state, b.Text)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), r.Env...)
	out, err := cmd.CombinedOutput()
	r.said = string(out)
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

// compare requires that the commands have said what is shown, whatever the spaces, and takes edits back.
func (r *Reader) compare(b Block) error {
	if r.silent {
		return nil
	}
	for path, content := range r.undo {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	clear(r.undo)
	if !shows(b.Text, r.said) {
		return fmt.Errorf("%w: it shows\n%s\nand this was said:\n%s", errOther, b.Text, r.said)
	}
	return nil
}

// shows reports whether what was said has what is shown, in which … is anything.
func shows(shown, said string) bool {
	var parts []string
	for part := range strings.SplitSeq(strings.Join(strings.Fields(shown), " "), "…") {
		parts = append(parts, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(strings.Join(parts, ".*")).MatchString(strings.Join(strings.Fields(said), " "))
}

// edit makes the file, or changes it.
func (r *Reader) edit(b Block) error {
	path := filepath.Join(r.dir, "pond", b.File())
	raw, err := os.ReadFile(path)
	if b.Language == "go" {
		if err == nil {
			return fmt.Errorf("%s is there already", b.File())
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

// patched applies hunks that have no line numbers: what they begin from must be there once. A hunk of changed lines
// without a context may be parts of lines.
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
			return "", fmt.Errorf("this is there %d times, and must be there once:\n%s", n, was)
		}
		content = strings.Replace(content, was, is, 1)
	}
	return content, nil
}
