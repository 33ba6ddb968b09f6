// Package e2e tries localkube as its users do: with its own command line and kubectl, on real clusters.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// user is a user with a cluster and a shell.
type user struct {
	cluster    string
	kubeconfig string
}

// tools are built once for all tests.
var tools struct{ localkube, kubectl string }

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: nodes are made of namespaces, which needs root")
		return 0
	}
	dir, err := os.MkdirTemp("", "localkube-e2e")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	tools.localkube = filepath.Join(dir, "localkube")
	if out, err := exec.Command("go", "build", "-o", tools.localkube, "..").CombinedOutput(); err != nil {
		fmt.Printf("build localkube: %v\n%s", err, out)
		return 1
	}
	build := exec.Command(tools.localkube, "build")
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		fmt.Println("localkube build:", err)
		return 1
	}
	for _, binDir := range strings.Fields(string(out)) {
		if file := filepath.Join(binDir, "kubectl"); exec.Command("test", "-x", file).Run() == nil {
			tools.kubectl = file
		}
	}
	return m.Run()
}

// tryLocalkube runs a command of localkube on the user's cluster.
func (u user) tryLocalkube(args ...string) (string, error) {
	return command(exec.Command(tools.localkube, append([]string{"--name", u.cluster}, args...)...))
}

func (u user) localkube(t *testing.T, args ...string) string {
	t.Helper()
	start := time.Now()
	out, err := u.tryLocalkube(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("localkube %s: %.1f s", strings.Join(args, " "), time.Since(start).Seconds())
	return out
}

func (u user) tryKubectl(args ...string) (string, error) { return command(u.kubectlCommand(args...)) }

func (u user) kubectlCommand(args ...string) *exec.Cmd {
	return exec.Command(tools.kubectl, append([]string{"--kubeconfig", u.kubeconfig}, args...)...)
}

func (u user) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := u.tryKubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (u user) apply(t *testing.T, manifest string) {
	t.Helper()
	cmd := u.kubectlCommand("apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if _, err := command(cmd); err != nil {
		t.Fatal(err)
	}
}

func command(cmd *exec.Cmd) (string, error) {
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), problem.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// eventually waits until what holds, and tells how long that took.
func eventually(t *testing.T, deadline time.Duration, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	start := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			t.Logf("%s: after %.1f s", what, time.Since(start).Seconds())
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s: %v", deadline, what, err)
		case <-tick.C:
		}
	}
}

// field reads one field of an object.
func (u user) field(t *testing.T, object, path string, args ...string) string {
	t.Helper()
	return u.kubectl(t, append([]string{"get", object, "-o", "jsonpath=" + path}, args...)...)
}

// is waits for a field's value.
func (u user) is(t *testing.T, deadline time.Duration, object, path, want string) {
	t.Helper()
	eventually(t, deadline, fmt.Sprintf("%s %s is %q", object, path, want), func() error {
		got, err := u.tryKubectl("get", object, "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

const ready = `{.status.conditions[?(@.type=="Ready")].status}`
