// Package cgroup gives a control group one name on every kind of machine: version 1 with its hierarchies, version 2 with
// one, or the hybrid of both.
//
// localkube keeps no list of the processes it started: every one of them is born into a group below /localkube, and its
// children stay there. So the kernel itself knows, also after any crash, what belongs to a cluster and what does not.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is the path of a control group below the root of every hierarchy, such as "/localkube/demo/n1".
type Group string

// Child is the group of that name inside g.
func (g Group) Child(name string) Group { return Group(path.Join(string(g), name)) }

// Name is the last element of the group's path.
func (g Group) Name() string { return path.Base(string(g)) }

// hierarchy is one mounted tree of control groups.
type hierarchy struct {
	mount   string
	unified bool
}

func (h hierarchy) dir(g Group) string { return filepath.Join(h.mount, string(g)) }

// hierarchies reads which trees this mount namespace has.
func hierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []hierarchy
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			found = append(found, hierarchy{mount: fields[1], unified: fields[2] == "cgroup2"})
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no control groups are mounted; mount them at /sys/fs/cgroup")
	}
	return found, nil
}

// each runs do for every hierarchy and joins what went wrong.
func each(do func(h hierarchy) error) error {
	found, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range found {
		errs = append(errs, do(h))
	}
	return errors.Join(errs...)
}

// Create makes the group and its ancestors in every hierarchy. A group that is there already is left as it is.
func (g Group) Create() error {
	return each(func(h hierarchy) error {
		at := Group("/")
		for _, name := range strings.Split(strings.Trim(string(g), "/"), "/") {
			h.delegate(at)
			at = at.Child(name)
			if err := os.MkdirAll(h.dir(at), 0o755); err != nil {
				return err
			}
			h.inheritCPUs(at)
		}
		return nil
	})
}

// delegate lets the children of g use every controller that g has: version 2 gives them none unless told so. A controller
// that cannot be passed on is left out; the kubelet says later which one it misses.
func (h hierarchy) delegate(g Group) {
	if !h.unified {
		return
	}
	controllers, _ := os.ReadFile(filepath.Join(h.dir(g), "cgroup.controllers"))
	for _, c := range strings.Fields(string(controllers)) {
		_ = os.WriteFile(filepath.Join(h.dir(g), "cgroup.subtree_control"), []byte("+"+c), 0)
	}
}

// inheritCPUs fills the processors and memory nodes of a new version 1 cpuset, which starts with none and would refuse
// every process.
func (h hierarchy) inheritCPUs(g Group) {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(h.dir(g), file))
		if err != nil || strings.TrimSpace(string(own)) != "" || h.unified {
			continue
		}
		if parent, err := os.ReadFile(filepath.Join(h.mount, path.Dir(string(g)), file)); err == nil {
			_ = os.WriteFile(filepath.Join(h.dir(g), file), parent, 0)
		}
	}
}

// Enter moves the calling process into the group.
func (g Group) Enter() error {
	return each(func(h hierarchy) error {
		return os.WriteFile(filepath.Join(h.dir(g), "cgroup.procs"), []byte("0"), 0)
	})
}

// Exists tells whether any hierarchy has the group.
func (g Group) Exists() bool {
	found, _ := hierarchies()
	return slices.ContainsFunc(found, func(h hierarchy) bool {
		_, err := os.Stat(h.dir(g))
		return err == nil
	})
}

// Children are the groups directly inside g, sorted.
func (g Group) Children() []Group {
	var names []string
	_ = each(func(h hierarchy) error {
		entries, err := os.ReadDir(h.dir(g))
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		return err
	})
	slices.Sort(names)
	var children []Group
	for _, n := range slices.Compact(names) {
		children = append(children, g.Child(n))
	}
	return children
}

// Pids are the processes of the group alone, in the order in which the kernel numbered them.
func (g Group) Pids() []int { return g.pids(false) }

// AllPids are the processes of the group and of every group inside it.
func (g Group) AllPids() []int { return g.pids(true) }

func (g Group) pids(deep bool) []int {
	seen := map[int]bool{}
	_ = each(func(h hierarchy) error {
		return filepath.WalkDir(h.dir(g), func(dir string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil
			}
			if !deep && dir != h.dir(g) {
				return fs.SkipDir
			}
			for _, pid := range readPids(filepath.Join(dir, "cgroup.procs")) {
				seen[pid] = true
			}
			return nil
		})
	})
	return sortedKeys(seen)
}

func sortedKeys(set map[int]bool) []int {
	keys := make([]int, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// readPids skips the zeros that stand for processes of other pid namespaces.
func readPids(file string) []int {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var pids []int
	for _, line := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Kill ends every process in the group and below it with SIGKILL, also frozen ones, and returns when none is left.
//
// Errors: some process outlives the deadline, such as one stuck in the kernel; it is named.
func (g Group) Kill(deadline time.Duration) error {
	if err := g.Thaw(); err != nil {
		return err
	}
	end := time.Now().Add(deadline)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		pids := g.AllPids()
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v of group %s outlive SIGKILL for %s", pids, g, deadline)
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(pause)
	}
}

// Remove deletes the group and all groups inside it, which must hold no process any more.
func (g Group) Remove() error {
	return each(func(h hierarchy) error {
		var dirs []string
		_ = filepath.WalkDir(h.dir(g), func(dir string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, dir)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			if err := removeDir(dir); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeDir tries again for a moment: a group stays busy until its last process has been reaped.
func removeDir(dir string) (err error) {
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		err = unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("remove group %s: %w", dir, err)
}
