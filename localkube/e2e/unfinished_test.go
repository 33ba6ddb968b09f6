package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHalfFinishedUp kills `up` at several points of its way; `down` must find all that there is, and leave nothing.
func TestHalfFinishedUp(t *testing.T) {
	for _, point := range []string{"nodes/n1/node.json", "logs/etcd.log", "nodes/n1/logs/init.log", "nodes/n1/logs/kubelet.log"} {
		t.Run("killed at "+point, func(t *testing.T) {
			before := takeInventory(t)
			u := user{cluster: "e2e-half"}
			t.Cleanup(func() { _, _ = u.tryLocalkube("down") })
			up := exec.Command(tools.localkube, "--name", u.cluster, "up", "--nodes", "2")
			if err := up.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, 30*time.Second, point+" is there", func() error {
				_, err := os.Stat(filepath.Join("/var/lib/localkube", u.cluster, point))
				return err
			})
			if err := up.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = up.Wait()
			u.localkube(t, "down")
			takeInventory(t).mustEqual(t, before)
		})
	}
}

// TestFullDisk gives localkube a disk that is too small: `up` must say so, and `down` must work on the full disk.
func TestFullDisk(t *testing.T) {
	const home = "/var/lib/localkube"
	if _, err := os.Stat(home); err == nil {
		t.Skip("another cluster lives on this machine; this test would hide its disk")
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", home, "tmpfs", 0, "size=90m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(home, 0); err != nil {
			t.Error(err)
		}
		_ = os.Remove(home)
	})
	before := takeInventory(t)
	u := user{cluster: "e2e-full"}
	t.Cleanup(func() { _, _ = u.tryLocalkube("down") })
	if _, err := u.tryLocalkube("up", "--nodes", "1"); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("up must say that the disk is full, it says: %v", err)
	}
	u.localkube(t, "down")
	takeInventory(t).mustEqual(t, before)
}

func TestUnknownTargets(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no such cluster": {[]string{"--name", "nosuch", "status"}, `no such cluster: "nosuch"`},
		"bad name":        {[]string{"--name", "No Such", "down"}, `cluster name "No Such"`},
		"nodes":           {[]string{"up", "--nodes", "0"}, "nodes: 0 is not between 1 and 50"},
		"recipe":          {[]string{"image", "build", "nosuch"}, "nosuch"},
		"archive":         {[]string{"image", "load", "/etc/passwd"}, ""},
		"command":         {[]string{"upp"}, `unknown command "upp"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := command(exec.Command(tools.localkube, test.args...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
