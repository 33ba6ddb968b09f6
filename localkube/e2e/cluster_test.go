package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCluster is the life of a cluster: it comes up, does what a Kubernetes does, survives what happens to machines, and
// leaves nothing behind, although its control plane is killed before it is taken down.
func TestCluster(t *testing.T) {
	before := takeInventory(t)
	u := user{cluster: "e2e", kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	t.Cleanup(func() { _, _ = u.tryLocalkube("down") })
	u.localkube(t, "up", "--nodes", "3", "--fast-node-detection", "--kubeconfig", u.kubeconfig)
	u.localkube(t, "image", "build", "busybox", "--load")

	for _, part := range []struct {
		name string
		test func(*testing.T, user)
	}{
		{"versions and zones", testVersions},
		{"up again changes nothing", testIdempotent},
		{"pods reach each other", testPodNetwork},
		{"exec, logs, cp, port-forward", testStreams},
		{"network policy", testNetworkPolicy},
		{"webhook", testWebhook},
		{"local volume", testLocalVolume},
		{"network volume", testNetworkVolume},
		{"full disk", testFullDisk},
		{"images of every recipe", testImages},
		{"rights", testRights},
		{"another cluster beside", testTwoClusters},
		{"a deleted pod is gone", testPodDeletion},
		{"node stop", testNodeStop},
		{"node pause", testNodePause},
		{"node partition", testPartition},
		{"partial partition", testPartialPartition},
		{"API server stop", testAPIServerStop},
		{"what ends by itself is restarted", testRestart},
		{"a dead supervisor is reported", testDeadSupervisor},
		{"up after the machine died", testMachineDied},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, u) })
	}

	killControlPlane(t, u)
	u.localkube(t, "down")
	takeInventory(t).mustEqual(t, before)
}

func testVersions(t *testing.T, u user) {
	version := u.field(t, "node/n1", "{.status.nodeInfo.kubeletVersion}")
	if server := u.kubectl(t, "version"); !strings.Contains(server, "Server Version: "+version) || !strings.Contains(server, "Client Version: "+version) {
		t.Errorf("kubelet is %s, but `kubectl version` says:\n%s", version, server)
	}
	if zones := u.field(t, "nodes", `{.items[*].metadata.labels.topology\.kubernetes\.io/zone}`); zones != "a b c" {
		t.Errorf("zones are %q, want a b c", zones)
	}
}

func testIdempotent(t *testing.T, u user) {
	pids := u.localkube(t, "status")
	u.localkube(t, "up", "--nodes", "3", "--fast-node-detection", "--kubeconfig", u.kubeconfig)
	if again := u.localkube(t, "status"); processIDs(again) != processIDs(pids) {
		t.Errorf("up again changed processes:\n%s\nbefore:\n%s", again, pids)
	}
	if _, err := u.tryLocalkube("up", "--nodes", "2", "--fast-node-detection"); err == nil || !strings.Contains(err.Error(), "nodes: cluster e2e has 3") {
		t.Errorf("fewer nodes must be refused, got: %v", err)
	}
}

// processIDs are the components of a status with their process IDs, but without what changes by itself.
func processIDs(status string) string {
	var out []string
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 6 {
			out = append(out, strings.Join(fields[:4], " "))
		}
	}
	return strings.Join(out, "\n")
}

func testRights(t *testing.T, u user) {
	if out, _ := u.tryKubectl("auth", "can-i", "get", "secrets", "--as", "system:serviceaccount:default:default"); strings.TrimSpace(out) != "no" {
		t.Errorf("an ordinary service account may read secrets: %q", out)
	}
	out, err := u.tryKubectl("label", "node/n2", "x=y", "--as", "system:node:n1", "--as-group", "system:nodes")
	if err == nil || !strings.Contains(err.Error(), `is not allowed to modify node "n2"`) {
		t.Errorf("a kubelet may change another node: %s %v", out, err)
	}
	out, _ = u.tryKubectl("auth", "can-i", "get", "persistentvolumeclaims/young", "--as", "system:node:n1", "--as-group", "system:nodes")
	if strings.TrimSpace(out) != "yes" {
		t.Errorf("a kubelet must not wait until the authorizer knows its pod: %q", out)
	}
	status, err := get("https://" + u.field(t, "node/n1", "{.status.addresses[0].address}") + ":10250/pods")
	if status != http.StatusUnauthorized {
		t.Errorf("the kubelet must ask who one is: got %d %v", status, err)
	}
}

func testTwoClusters(t *testing.T, u user) {
	other := user{cluster: "e2e-other", kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	t.Cleanup(func() { _, _ = other.tryLocalkube("down") })
	other.localkube(t, "up", "--nodes", "1", "--kubeconfig", other.kubeconfig)
	if names := other.field(t, "nodes", "{.items[*].metadata.name}"); names != "n1" {
		t.Errorf("the other cluster's nodes: %s", names)
	}
	other.localkube(t, "down")
	u.is(t, 10*time.Second, "node/n1", ready, "True")
	u.localkube(t, "status")
}
