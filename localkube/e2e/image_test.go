package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// etcdPod runs one version of etcd with upstream's own command line, as a user without rights on a read-only root.
const etcdPod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {test: images}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 1000, fsGroup: 1000}
  containers:
  - name: etcd
    image: %[2]s
    command: [/usr/local/bin/etcd, --data-dir=/data/etcd]
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {exec: {command: [/usr/local/bin/etcdctl, "--endpoints=http://127.0.0.1:2379", member, list]}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`

const memcachedPod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {test: images}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: memcached
    image: %[2]s
    args: [memcached, -m, "64"]
    securityContext: {runAsUser: 11211, runAsNonRoot: true, readOnlyRootFilesystem: true}
    readinessProbe: {tcpSocket: {port: 11211}, periodSeconds: 1}
`

// testImages builds every recipe and runs the servers among them under a real kubelet, which never asks a registry.
func testImages(t *testing.T, u user) {
	u.localkube(t, "image", "build", "all", "--load")
	for line := range strings.Lines(u.localkube(t, "image", "list")) {
		fields := strings.Fields(line)
		short, reference := fields[0], fields[1]
		pod := strings.ReplaceAll(short, ".", "-")
		switch {
		case strings.HasPrefix(short, "etcd"):
			u.apply(t, fmt.Sprintf(etcdPod, pod, reference))
		case strings.HasPrefix(short, "memcached"):
			u.apply(t, fmt.Sprintf(memcachedPod, pod, reference))
		default:
			continue
		}
		u.is(t, 30*time.Second, "pod/"+pod, `{.status.conditions[?(@.type=="ContainersReady")].status}`, "True")
		if strings.HasPrefix(short, "etcd") {
			testEtcdctl(t, u, pod, reference)
		}
	}
	u.kubectl(t, "delete", "pods", "-l", "test=images")
}

// testEtcdctl asks the server through the image's own client, which must be of the same version.
func testEtcdctl(t *testing.T, u user, pod, reference string) {
	t.Helper()
	_, version, _ := strings.Cut(reference, ":v")
	said := u.kubectl(t, "exec", pod, "--", "/usr/local/bin/etcd", "--version")
	if !strings.Contains(said, "etcd Version: "+version) {
		t.Errorf("%s says: %s", reference, said)
	}
	// Before 3.4, etcdctl speaks the old API unless a variable says otherwise; --endpoints is the same in both.
	said, err := u.tryKubectl("exec", pod, "--", "/usr/local/bin/etcdctl", "--endpoints=http://127.0.0.1:2379", "member", "list")
	if err != nil || !strings.Contains(said, "http://localhost:2379") {
		t.Errorf("etcdctl of %s: %v: %s", reference, err, said)
	}
}
