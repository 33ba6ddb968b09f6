package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// goCommand runs the go command in one wrapper module.
type goCommand struct {
	dir string
	log io.Writer
}

// goVersion is the version of the go command, as in "go1.26.8".
func goVersion(ctx context.Context, dir string) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("localkube builds Kubernetes with Go, but there is no go command in PATH; " +
			"install a current Go and put its bin folder in PATH")
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir, cmd.Env = dir, environment("readonly")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOVERSION: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// run runs go with arguments, calling onLine for every line it says. modules
// is the -mod flag: "readonly" holds the build to go.sum.
func (g goCommand) run(ctx context.Context, modules string, onLine func(string), args ...string) error {
	said := &transcript{onLine: onLine}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = g.dir, environment(modules)
	cmd.Stderr = io.MultiWriter(g.log, said)
	// A group of its own, so that the compilers end with the go command.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	fmt.Fprintf(g.log, "$ cd %s && go %s\n", g.dir, strings.Join(args, " "))
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return explain(args[0], said.text(), err)
	}
	return nil
}

// environment keeps what the user says about proxies and caches, and nothing
// that would change the programs.
func environment(modules string) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH,
		"GO111MODULE=on", "GOWORK=off", "GOFLAGS=-mod="+modules)
}

// transcript splits what the go command says into lines, and keeps the last
// that are worth showing.
type transcript struct {
	onLine func(string)
	part   []byte
	tail   []string
}

const tailLines = 20

func (t *transcript) Write(p []byte) (int, error) {
	t.part = append(t.part, p...)
	for {
		line, rest, ok := bytes.Cut(t.part, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		t.part = rest
		t.add(string(line))
	}
}

func (t *transcript) add(line string) {
	if t.onLine != nil {
		t.onLine(line)
	}
	repeated := len(t.tail) > 0 && t.tail[len(t.tail)-1] == line
	if isPackage(line) || isDownload(line) || repeated {
		return
	}
	t.tail = append(t.tail, line)
	if len(t.tail) > tailLines {
		t.tail = t.tail[1:]
	}
}

func (t *transcript) text() string {
	return strings.Join(append(t.tail, string(t.part)), "\n")
}

func isDownload(line string) bool { return strings.HasPrefix(line, "go: downloading ") }

// isPackage says whether a line is go build -v telling what it compiles.
func isPackage(line string) bool { return line != "" && !strings.ContainsAny(line, " :\t#") }
