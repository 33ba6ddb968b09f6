package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inventory is what a cluster could leave behind, by kind, sorted.
type inventory map[string][]string

func takeInventory(t *testing.T) inventory {
	t.Helper()
	return inventory{
		"processes":      clusterProcesses(),
		"net namespaces": namespaces("net"),
		"pid namespaces": namespaces("pid"),
		"mounts":         lines("/proc/self/mounts"),
		"links":          output(t, "ip", "-brief", "link"),
		"routes":         output(t, "ip", "route", "show", "table", "all"),
		"nft tables":     output(t, "nft", "list", "tables"),
		"loop devices":   output(t, "losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"),
		"cgroups":        cgroups(),
		"files":          existing("/var/lib/localkube", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/etc/cni/net.d", "/var/log/pods", "/var/log/containers"),
		"forwarding":     lines("/proc/sys/net/ipv4/ip_forward"),
	}
}

// mustEqual waits a moment: the kernel takes namespaces away after their last process.
func (i inventory) mustEqual(t *testing.T, before inventory) {
	t.Helper()
	diff := cmp.Diff(before, i)
	for end := time.Now().Add(3 * time.Second); diff != "" && time.Now().Before(end); {
		diff = cmp.Diff(before, takeInventory(t))
	}
	if diff != "" {
		t.Error("down left something behind (-before +after):\n" + diff)
	}
}

func lines(file string) []string {
	data, _ := os.ReadFile(file)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func output(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := command(exec.Command(args[0], args[1:]...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(out, "\n")
}

// clusterProcesses are the processes that a control group of localkube holds.
func clusterProcesses() []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	var found []string
	for _, file := range files {
		if data, _ := os.ReadFile(file); strings.Contains(string(data), "/localkube/e2e") {
			found = append(found, file)
		}
	}
	return found
}

// namespaces are the network or pid namespaces that a process lives in.
func namespaces(kind string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/ns/" + kind)
	var found []string
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil {
			found = append(found, target)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// cgroups are localkube's control groups. The machine makes and removes others all the time.
func cgroups() []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		if otherCluster(dir) {
			return fs.SkipDir
		}
		if strings.Contains(dir, "/localkube") {
			found = append(found, dir)
		}
		return nil
	})
	return found
}

// otherCluster tells whether the group belongs to a cluster that lives on this machine beside those of the tests.
func otherCluster(group string) bool {
	_, name, ours := strings.Cut(group, "/localkube/")
	return ours && !strings.HasPrefix(name, "e2e")
}

func existing(paths ...string) []string {
	var found []string
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			found = append(found, p)
		}
	}
	return found
}
