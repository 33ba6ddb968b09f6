package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mustRefuse runs localkube and wants an error with those words.
func mustRefuse(t *testing.T, cmd *exec.Cmd, want ...string) {
	t.Helper()
	_, err := command(cmd)
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want an error with %q", err, w)
		}
	}
}

func TestNotRoot(t *testing.T) {
	for _, args := range [][]string{{"up"}, {"down"}, {"node", "stop", "n1"}, {"image", "load", "x.tar"}} {
		cmd := exec.Command(tools.localkube, args...)
		if err := os.Chmod(filepath.Dir(tools.localkube), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		mustRefuse(t, cmd, "run it with sudo", "KUBECONFIG")
	}
}

func TestPortInUse(t *testing.T) {
	before := takeInventory(t)
	u := user{cluster: "e2e-port"}
	t.Cleanup(func() { _, _ = u.tryLocalkube("down") })
	l, err := net.Listen("tcp", ":36443")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mustRefuse(t, exec.Command(tools.localkube, "--name", u.cluster, "up", "--api-port", "36443"), "kube-apiserver needs port 36443", "in use", "--api-port")
	u.localkube(t, "down")
	takeInventory(t).mustEqual(t, before)
}
