// Package process starts the long-running programs of a cluster, each in a control group of its own, and tells how they
// are. The group is the record: a program that was started is found by its group, also by another localkube later.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/governor-dev/governor/localkube/cgroup"
)

// EnterCommand is the hidden command of localkube that moves itself into a control group and then becomes another program:
// `localkube in-group GROUP PROGRAM ARG…`. A child is thus in its group before it can do anything.
const EnterCommand = "in-group"

// Program is one long-running program.
type Program struct {
	// Group is where it lives, with everything that it starts.
	Group cgroup.Group
	// Args are the path of the program and its arguments.
	Args []string
	// Env are additions to the environment, NAME=value.
	Env []string
	// Log is the file that gets its output, appended to.
	Log string
	// Record is the file of what is to be remembered of it; empty for a program that nothing restarts.
	Record string
}

// Command is the program ready to be started inside its group.
func (p Program) Command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := p.Group.Create(); err != nil {
		return nil, fmt.Errorf("control group of %s: %w", filepath.Base(p.Args[0]), err)
	}
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{EnterCommand, string(p.Group)}, p.Args...)...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// Start starts the program, unless it is running already, and does not wait for it: it outlives the caller. From now on
// it is meant to run.
func (p Program) Start() error {
	unlock, err := p.lock()
	if err != nil {
		return err
	}
	defer unlock()
	r := p.History()
	r.Stopped = false
	if err := p.save(r); err != nil || p.Running() {
		return err
	}
	return p.launch()
}

// launch starts the program and returns when it runs.
func (p Program) launch() error {
	cmd, err := p.Command()
	if err != nil {
		return err
	}
	return Launch(cmd)
}

// bornFile is the inherited file into which a child writes inGroup when it is in its group, then what goes wrong, if
// anything does; it is closed when the child becomes the program.
//
// The word must be heard: a child whose parent was killed meanwhile exits. A process that cleans up after the parent has
// perhaps looked into the group already.
const bornFile = 3

const inGroup = "in group\n"

// Launch starts what [Program.Command] made and returns when the child is in its group and has become the program.
func Launch(cmd *exec.Cmd) error {
	defer func() { _ = cmd.Stdout.(io.Closer).Close() }()
	born, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer born.Close()
	cmd.ExtraFiles = append([]*os.File{theirs}, cmd.ExtraFiles...)
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	said, err := io.ReadAll(born)
	if problem := strings.TrimPrefix(string(said), inGroup); problem != "" {
		return errors.New(problem)
	}
	return err
}

// Running tells whether a process lives in the program's group.
func (p Program) Running() bool { return len(p.Group.Pids()) > 0 }

// Stop ends the program and all that it started, without a chance to say goodbye. It stays stopped until Start.
func (p Program) Stop() error {
	unlock, err := p.lock()
	if err != nil {
		return err
	}
	defer unlock()
	r := p.History()
	r.Stopped = true
	if err := p.save(r); err != nil {
		return err
	}
	return p.Group.Kill(10 * time.Second)
}

// Enter is what [EnterCommand] does: args are the group, the program and its arguments. It returns only to say what failed.
func Enter(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: localkube %s GROUP PROGRAM [ARG…]", EnterCommand)
	}
	syscall.CloseOnExec(bornFile)
	born := os.NewFile(bornFile, "born")
	err := cgroup.Group(args[0]).Enter()
	if err == nil {
		_, err = born.WriteString(inGroup)
	}
	if err == nil {
		err = syscall.Exec(args[1], args[1:], os.Environ())
	}
	err = fmt.Errorf("run %s in group %s: %w", args[1], args[0], err)
	_, _ = born.WriteString(err.Error())
	return err
}

// LastLines are the last n lines of a log file, or why they cannot be read.
func LastLines(file string, n int) []string {
	const tail = 16 << 10
	f, err := os.Open(file)
	if err != nil {
		return []string{err.Error()}
	}
	defer f.Close()
	if _, err := f.Seek(-tail, io.SeekEnd); err != nil && !errors.Is(err, syscall.EINVAL) {
		return []string{err.Error()}
	}
	data, err := io.ReadAll(io.LimitReader(f, tail))
	if err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	return lines[max(0, len(lines)-n):]
}
