package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// evidence are the commands whose output explains a failure, with the namespace at the end.
var evidence = []struct {
	file string
	args []string
}{
	{"objects.yaml", []string{"get", "all,pvc,etcdclusters,podsets,memcacheds,configmaps,poddisruptionbudgets", "-o", "yaml", "-n"}},
	{"events.txt", []string{"get", "events", "--sort-by=.lastTimestamp", "-n"}},
	{"pods.txt", []string{"describe", "pods", "-n"}},
}

// keepEvidence writes what explains the failure of a test into build/ci/artifacts, before the namespace is deleted.
func keepEvidence(t *testing.T, namespace string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	dir := filepath.Join("../../build/ci/artifacts", strings.ReplaceAll(t.Name(), "/", "_"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Log(err)
		return
	}
	for _, e := range evidence {
		keepOutput(dir, e.file, append(e.args, namespace)...)
	}
	for _, pod := range strings.Fields(outputOf("get", "pods", "-n", namespace, "-o", "name")) {
		keepOutput(dir, strings.ReplaceAll(pod, "/", "-")+".log", "logs", "--all-containers", "--tail=2000", "-n", namespace, pod)
	}
	keepOutput(dir, "nodes.txt", "get", "nodes", "-o", "wide")
	keepOutput(dir, "operator.log", "logs", "-n", "governor-system", "-l", "app.kubernetes.io/name=governor", "--prefix", "--tail=5000")
	pressure, _ := os.ReadFile("/proc/pressure/cpu")
	t.Logf("evidence: %s; CPU pressure: %s", dir, strings.SplitN(string(pressure), "\n", 2)[0])
}

func keepOutput(dir, file string, args ...string) {
	out, err := kubectl(args...)
	if err != nil {
		out = fmt.Sprintf("%s\n%v", out, err)
	}
	_ = os.WriteFile(filepath.Join(dir, file), []byte(out), 0o600) // the test has failed already
}

// outputOf is the output of kubectl, or nothing.
func outputOf(args ...string) string {
	out, _ := kubectl(args...)
	return out
}
