package build_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/governor-dev/governor/localkube/build"
)

// The pause family needs no module, so it is cheap enough for every run.
func TestBuildsPauseOnce(t *testing.T) {
	out := &strings.Builder{}
	cache := build.Cache{Dir: t.TempDir(), Out: out}
	dir, err := cache.Family(context.Background(), "pause")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "pause")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("no program pause in %s: %v", dir, err)
	}
	if !strings.Contains(out.String(), "done") {
		t.Errorf("nothing said of a build:\n%s", out)
	}
	out.Reset()
	again, err := cache.Family(context.Background(), "pause")
	if err != nil || again != dir || out.Len() > 0 {
		t.Errorf("second build: %s, %v, said %q; want %s from the cache, silently", again, err, out, dir)
	}
}

// TestBuildsComponents builds everything that a cluster needs, which takes
// minutes where Go's build cache is cold.
func TestBuildsComponents(t *testing.T) {
	if os.Getenv("LOCALKUBE_SLOW") == "" {
		t.Skip("set LOCALKUBE_SLOW=1 to build a whole cluster's programs")
	}
	cache, err := build.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := cache.Components(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"kube-apiserver":          "Kubernetes " + build.KubernetesVersion(),
		"kube-controller-manager": "Kubernetes " + build.KubernetesVersion(),
		"kube-scheduler":          "Kubernetes " + build.KubernetesVersion(),
		"kube-proxy":              "Kubernetes " + build.KubernetesVersion(),
		"kubelet":                 "Kubernetes " + build.KubernetesVersion(),
		"containerd":              version(t, "containerd"),
		"containerd-shim-runc-v2": "",
		"ctr":                     version(t, "containerd"),
		"etcd":                    "etcd Version: " + strings.TrimPrefix(version(t, "etcd"), "v"),
	} {
		flag := "--version"
		if name == "containerd-shim-runc-v2" {
			flag = "-v"
		}
		out, err := exec.Command(programs.Path(name), flag).CombinedOutput()
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s %s: %v, %q does not contain %q", name, flag, err, out, says)
		}
	}
}

func version(t *testing.T, family string) string {
	t.Helper()
	v, err := build.FamilyVersion(family)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
