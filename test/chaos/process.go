package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// signal kills or freezes the members' processes on this machine.
func (v *adversary) signal(ctx context.Context, what chaos.Manipulation, target int) (done does.Done, err error) {
	pods := v.targets(ctx, what, target)
	if len(pods) == 0 {
		return done, does.ErrNothing
	}
	sig := syscall.SIGKILL
	if what.Verb == chaos.VerbFreeze {
		sig = syscall.SIGSTOP
		done.Undo = func(context.Context) error {
			for _, p := range pods {
				_ = signalPod(p, syscall.SIGCONT) // it may have terminated meanwhile
			}
			return nil
		}
	}
	for _, p := range pods {
		if err := signalPod(p, sig); err != nil {
			return done, err
		}
		done.Objects = append(done.Objects, p.Name)
	}
	return done, nil
}

// signalPod signals all processes of the pod except its pause process.
func signalPod(p corev1.Pod, sig syscall.Signal) error {
	processes, err := processesOf(p)
	if err != nil {
		return err
	}
	for _, process := range processes {
		id, err := strconv.Atoi(process)
		if err != nil {
			return err
		}
		if err := syscall.Kill(id, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// processesOf are the IDs of the pod's processes on this machine, except its pause process; at least one.
func processesOf(p corev1.Pod) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(groups), "pod"+string(p.UID)) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || len(line) == 0 || strings.HasPrefix(string(line), "/pause") {
			continue
		}
		found = append(found, filepath.Base(filepath.Dir(file)))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process of %s runs on this machine: %w", p.Name, does.ErrNothing)
	}
	return found, nil
}
