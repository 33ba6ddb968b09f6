package e2e_test

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// TestPluginOnRealApplications tries every command on etcd and memcached with real pods.
func TestPluginOnRealApplications(t *testing.T) {
	c := formed(t, 3)
	ns := c.key.Namespace
	cache := &instance{c.key}
	cache.key.Name = "cache"
	cache.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	cache.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	says(t, ns, 0, []string{"etcdcluster/etcd ", "memcached/cache ", "3/3", "2/2", "3.6."}, "status", "-o", "wide")
	says(t, ns, 0, []string{
		"etcdcluster/etcd in " + ns + ": ready. Everything is as declared.", "last step: ",
		"├─ etcd-0  ", "Leader  Healthy  3.6.", "pod etcd-2-0  Ready  v3.6.", "volume etcd-2-", "Bound",
	}, "status", "etcdcluster", "etcd")
	says(t, ns, 0, []string{"└─ cache", "Ready  1.6.18  on "}, "status", "memcached/cache")
	says(t, ns, 0, []string{"ROLE", "Leader", "Follower", "ID"}, "members", "etcdc/etcd", "-o", "wide")
	says(t, ns, 0, []string{"HEALTH", "cache-", "Ready"}, "members", "memcached/cache")
	says(t, ns, 0, []string{"Scheduled  pod/etcd-0-0", "etcdcluster/etcd"}, "events", "etcdcluster/etcd", "--members")
	says(t, ns, 0, []string{"1. AddLearner etcd-3 (Routine)", "Then: Everything is as declared."}, "plan", "etcdcluster/etcd", "--set", "spec.size=4")
	says(t, ns, 0, []string{"~ change Deployment cache", "spec.replicas: 2 → 3"}, "plan", "memcached/cache", "--set", "spec.size=3")
	says(t, ns, 0, []string{"nothing to do"}, "plan", "etcdcluster/etcd")
	says(t, ns, 1, []string{`error: etcdcluster/etcd: unknown field "spec.sizes"; kubectl explain`}, "plan", "etcdcluster/etcd", "--set", "spec.sizes=4")
	says(t, ns, 0, []string{"etcdcluster/etcd paused"}, "pause", "etcdcluster/etcd")
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 4 })
	says(t, ns, 0, []string{"It is paused"}, "plan", "etcdcluster/etcd")
	says(t, ns, 0, []string{"etcdcluster/etcd resumed"}, "resume", "etcdcluster/etcd")
	c.settled(t)
	says(t, ns, 0, []string{"Promote etcd-3 in"}, "history", "etcdcluster/etcd", "--step", "Promote")
	says(t, ns, 0, []string{"generation 2", "AddLearner etcd-3 in", "Now: it is ready"}, "why", "etcdcluster/etcd")
}

// says runs the plugin and checks its exit code and its output.
func says(t *testing.T, namespace string, code int, all []string, args ...string) {
	t.Helper()
	said, got := plugin(t, namespace, args...)
	if got != code {
		t.Errorf("kubectl governor %q: exit %d, want %d:\n%s", args, got, code, said)
	}
	for _, words := range all {
		if !contains(said, words) {
			t.Errorf("kubectl governor %q does not say %q:\n%s", args, words, said)
		}
	}
	t.Logf("$ kubectl governor %q\n%s", args, said)
}

// pluginBinary is what `make bin/kubectl-governor` builds, before the cluster is up.
const pluginBinary = "../../bin/kubectl-governor"

// plugin runs the plugin as a user does, and returns its output and exit code.
func plugin(t *testing.T, namespace string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pluginBinary, append([]string{"-n", namespace}, args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said.String(), cmd.ProcessState.ExitCode()
}
