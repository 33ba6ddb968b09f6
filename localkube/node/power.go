package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/governor-dev/governor/localkube/process"
)

// powerOffDeadline is how long the kernel may take to end a node's processes.
const powerOffDeadline = 30 * time.Second

// Init is the process ID of the node's first process as the machine sees it, or 0 when the node is off.
func (n Node) Init() int {
	if pids := n.init().Group.Pids(); len(pids) > 0 {
		return pids[0]
	}
	return 0
}

func (n Node) init() process.Program { return n.program("init") }

// Start powers the node on, unless it is on, and starts those of its programs that do not run. It returns when they have
// been started.
func (n Node) Start(ctx context.Context) error {
	if n.Init() == 0 {
		if err := n.powerOn(); err != nil {
			return fmt.Errorf("start node %s: %w", n.Name, err)
		}
	}
	if err := n.Plan.EnsureAttached(n.Number, n.Init()); err != nil {
		return err
	}
	return n.run(ctx, BootCommand, n.specFile())
}

// powerOn makes the namespaces and returns when the node's first process has prepared them.
func (n Node) powerOn() error {
	if err := errors.Join(n.clearGroups(), n.Pods().Create()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	first := n.init()
	first.Args = []string{self, InitCommand, n.specFile()}
	cmd, err := first.Command()
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC
	return n.startAndAwait(cmd, first.Log)
}

// startAndAwait starts the first process and waits for its byte on the ready file.
func (n Node) startAndAwait(cmd *exec.Cmd, log string) error {
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	err = process.Launch(cmd)
	_ = theirs.Close()
	if err != nil {
		return explainClone(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("its first process ended; the end of %s:\n%s", log, strings.Join(process.LastLines(log, 5), "\n"))
	}
	return nil
}

func explainClone(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("this kernel refuses new namespaces (pid, mount, uts, net, ipc): %w", err)
	}
	return err
}

// clearGroups removes the groups that an earlier life of the node left: a kubelet that finds groups of dead containers
// spends seconds on each.
func (n Node) clearGroups() error {
	if err := n.Group.Kill(powerOffDeadline); err != nil {
		return err
	}
	return n.Group.Remove()
}

// Stop cuts the power: every process of the node dies at once.
func (n Node) Stop() error {
	// The first process goes first: with it the kernel ends the rest, before any of them can notice. A frozen node dies when
	// Kill thaws it.
	if pid := n.Init(); pid != 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if err := n.Group.Kill(powerOffDeadline); err != nil {
		return fmt.Errorf("stop node %s: %w", n.Name, err)
	}
	return n.Plan.Detach(n.Number)
}

// Pause freezes everything on the node; to the others it looks as if it were away.
func (n Node) Pause() error { return n.mustBeOn(n.Group.Freeze) }

// Resume lets a frozen node go on.
func (n Node) Resume() error { return n.mustBeOn(n.Group.Thaw) }

func (n Node) mustBeOn(do func() error) error {
	if n.Init() == 0 {
		return fmt.Errorf("node %s is off; `localkube node start %s` powers it on", n.Name, n.Name)
	}
	return do()
}

// ImportImages makes a running node import the archives of the images folder.
func (n Node) ImportImages(ctx context.Context) error { return n.run(ctx, ImportCommand, n.specFile()) }

// ImportCommand is the hidden command of localkube that imports images, run inside the node's namespaces.
const ImportCommand = "node-import"

// Import imports what is new in the images folder into the node that the file describes.
func Import(ctx context.Context, specFile string) error {
	n, err := read(specFile)
	if err != nil {
		return err
	}
	return n.importImages(ctx)
}

// run runs a command of localkube inside the node's namespaces; what it starts stays in them.
func (n Node) run(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	enter := []string{"--target", strconv.Itoa(n.Init()), "--mount", "--uts", "--ipc", "--net", "--pid", self}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("node %s: %s: %w: %s", n.Name, args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Log is the file of a program's log on the node.
func (n Node) Log(program string) string { return filepath.Join(n.Dir, "logs", program+".log") }
