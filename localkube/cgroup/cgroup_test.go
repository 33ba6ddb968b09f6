package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// newGroup makes a real group, which takes root, and takes it away after the test.
func newGroup(t *testing.T) Group {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups belong to root")
	}
	g := Group(fmt.Sprintf("/localkube-test-%d", os.Getpid()))
	if err := g.Child("leaf").Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Kill(5 * time.Second); err != nil {
			t.Error(err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if g.Exists() {
			t.Errorf("group %s is still there", g)
		}
	})
	return g
}

// enterCommand is a shell that moves itself into the group and then sleeps, with a child.
func enter(t *testing.T, g Group) {
	t.Helper()
	found, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, h := range found {
		script += fmt.Sprintf("echo $$ > %s/cgroup.procs; ", h.dir(g))
	}
	cmd := exec.Command("sh", "-c", script+"sleep 1000 & exec sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	waitFor(t, "two processes in the group", func() bool { return len(g.Pids()) == 2 })
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !holds(); {
		if time.Now().After(end) {
			t.Fatal("not within 5 s: " + what)
		}
	}
}

func TestKillReachesChildrenAndFrozenProcesses(t *testing.T) {
	g := newGroup(t)
	leaf := g.Child("leaf")
	enter(t, leaf)
	if got := g.Pids(); len(got) != 0 {
		t.Errorf("the group itself has processes %v", got)
	}
	if got := g.AllPids(); len(got) != 2 {
		t.Errorf("the group and its children have %v, want 2", got)
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if !g.Frozen() {
		t.Error("the frozen group says it is not")
	}
	if err := g.Kill(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := g.AllPids(); len(got) != 0 {
		t.Errorf("processes %v outlived", got)
	}
}

func TestChildren(t *testing.T) {
	g := newGroup(t)
	children := g.Children()
	if len(children) != 1 || children[0] != g.Child("leaf") || children[0].Name() != "leaf" {
		t.Errorf("children are %v", children)
	}
	if none := Group("/localkube-no-such-group"); none.Exists() || len(none.AllPids()) != 0 {
		t.Error("a group that does not exist has something")
	}
}

// TestOnVersionTwoAlone runs the other tests where only version 2 is mounted, as on most machines of today.
func TestOnVersionTwoAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups belong to root")
	}
	const script = `umount --lazy --recursive /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$0" -test.v -test.run 'TestKill|TestChildren'`
	out, err := exec.Command("unshare", "--mount", "sh", "-c", script, os.Args[0]).CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
