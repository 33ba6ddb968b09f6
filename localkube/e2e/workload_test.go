package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// get fetches a URL from this machine, which is no part of the cluster, over a connection of its own.
func get(url string) (status int, err error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the server's identity does not matter here
	}}
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return response.StatusCode, err
}

const busybox = "docker.io/library/busybox:1.35.0"

// web is a DaemonSet whose pods answer with their node's name, and its Service.
const web = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: ` + busybox + `
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        command: [sh, -c, 'mkdir /tmp/www && echo "$NODE" > /tmp/www/index.html && echo started && exec httpd -f -p 8080 -h /tmp/www']
        readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

func testPodNetwork(t *testing.T, u user) {
	u.apply(t, web)
	u.kubectl(t, "rollout", "status", "daemonset/web", "--timeout=60s")
	pods := strings.Fields(u.field(t, "pods", "{.items[*].metadata.name}", "-l", "app=web"))
	addresses := strings.Fields(u.field(t, "pods", "{.items[*].status.podIP}", "-l", "app=web"))
	for _, from := range pods {
		for _, to := range addresses {
			u.kubectl(t, "exec", from, "--", "timeout", "5", "wget", "-q", "-O", "-", "http://"+to+":8080/")
		}
		// kube-proxy learns of new endpoints about once a second.
		eventually(t, 10*time.Second, "from "+from+" the service reaches all nodes", func() error {
			answers, err := u.tryKubectl("exec", from, "--", "sh", "-c", `for i in $(seq 40); do timeout 5 wget -q -O - http://web/; done | sort -u`)
			if err == nil && answers != "n1\nn2\nn3" {
				err = fmt.Errorf("it reaches %q", answers)
			}
			return err
		})
		u.kubectl(t, "exec", from, "--", "nslookup", "web.default.svc.cluster.local")
	}
	if got := u.kubectl(t, "get", "--raw", "/api/v1/namespaces/default/services/web:80/proxy/"); !strings.HasPrefix(got, "n") {
		t.Errorf("service proxy answers %q", got)
	}
}

func testStreams(t *testing.T, u user) {
	pod := strings.Fields(u.field(t, "pods", "{.items[*].metadata.name}", "-l", "app=web"))[0]
	if logs := u.kubectl(t, "logs", pod); !strings.Contains(logs, "started") {
		t.Errorf("logs: %q", logs)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.kubectl(t, "cp", file, pod+":/tmp/copied")
	if got := u.kubectl(t, "exec", pod, "--", "cat", "/tmp/copied"); got != "a file" {
		t.Errorf("the copied file holds %q", got)
	}
	testPortForward(t, u, pod)
}

func testPortForward(t *testing.T, u user, pod string) {
	forward := u.kubectlCommand("port-forward", "pod/"+pod, ":8080")
	out, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forward.Process.Kill(); _ = forward.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("port-forward says nothing:", err)
	}
	port := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(line)
	if port == nil {
		t.Fatalf("port-forward says %q", line)
	}
	response, err := http.Get("http://127.0.0.1:" + port[1] + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); !strings.HasPrefix(string(body), "n") {
		t.Errorf("through port-forward: %q", body)
	}
}

// testPodDeletion measures what deletions take beyond the pod's own shutdown. This one ignores the signal to stop and so
// uses up its grace; the kubelet gives every pod at least 2 s. One pod of each node is deleted, and all have run for a
// while: a kubelet looks at its pods once a second, and twice at one that has just started. The middle one is judged.
func testPodDeletion(t *testing.T, u user) {
	const grace = 2 * time.Second
	var took []time.Duration
	for _, node := range []string{"n1", "n2", "n3"} {
		pod, _ := u.webPodOn(t, node)
		start := time.Now()
		u.kubectl(t, "delete", "pod", pod, "--grace-period=2")
		took = append(took, time.Since(start)-grace)
	}
	slices.Sort(took)
	t.Logf("beyond their grace of %s, pods were gone after %v", grace, took)
	if took[1] > 2*time.Second {
		t.Errorf("pods were gone %v after their shutdown, want at most 2 s", took)
	}
	u.kubectl(t, "rollout", "status", "daemonset/web", "--timeout=60s")
}

func volumePod(name, class, node string, annotations string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, annotations: {%[4]s}}
spec: {storageClassName: %[2]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 40Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {%[3]s}
  securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000}
  containers:
  - name: c
    image: %[5]s
    command: [sleep, "100000"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %[1]s}}]
`, name, class, node, annotations, busybox)
}

func (u user) sh(t *testing.T, pod, script string) string {
	t.Helper()
	return u.kubectl(t, "exec", pod, "--", "sh", "-c", script)
}

func testLocalVolume(t *testing.T, u user) {
	u.apply(t, volumePod("onlocal", "local", "", ""))
	u.is(t, 30*time.Second, "pod/onlocal", ready, "True")
	home := u.field(t, "pod/onlocal", "{.spec.nodeName}")
	u.sh(t, "onlocal", "echo kept > /data/file")
	u.kubectl(t, "delete", "pod", "onlocal")
	u.apply(t, volumePod("onlocal", "local", "", ""))
	u.is(t, 30*time.Second, "pod/onlocal", ready, "True")
	if again := u.field(t, "pod/onlocal", "{.spec.nodeName}"); again != home {
		t.Errorf("the pod moved from %s to %s, away from its local volume", home, again)
	}
	if got := u.sh(t, "onlocal", "cat /data/file"); got != "kept" {
		t.Errorf("the volume holds %q", got)
	}
	u.kubectl(t, "patch", "pvc", "onlocal", "-p", `{"spec":{"resources":{"requests":{"storage":"80Mi"}}}}`)
	u.is(t, 10*time.Second, "pvc/onlocal", "{.status.capacity.storage}", "80Mi")
	volume := u.field(t, "pvc/onlocal", "{.spec.volumeName}")
	u.kubectl(t, "delete", "pod/onlocal", "pvc/onlocal")
	u.kubectl(t, "wait", "--for=delete", "pv/"+volume, "--timeout=20s")
	if _, err := os.Stat("/var/lib/localkube/" + u.cluster + "/volumes/" + volume); err == nil {
		t.Error("the deleted volume's folder is still there")
	}
}

func testNetworkVolume(t *testing.T, u user) {
	u.apply(t, volumePod("onnet", "network", "kubernetes.io/hostname: n1", ""))
	u.is(t, 30*time.Second, "pod/onnet", ready, "True")
	u.sh(t, "onnet", "echo kept > /data/file")
	u.kubectl(t, "delete", "pod", "onnet")
	u.apply(t, volumePod("onnet", "network", "kubernetes.io/hostname: n2", ""))
	u.is(t, 30*time.Second, "pod/onnet", ready, "True")
	if got := u.sh(t, "onnet", "cat /data/file"); got != "kept" {
		t.Errorf("on the other node the volume holds %q", got)
	}
	u.kubectl(t, "delete", "pod/onnet", "pvc/onnet")
}

func testFullDisk(t *testing.T, u user) {
	u.apply(t, volumePod("full", "local", "", `localkube.governor.dev/enforce-size: "true"`))
	u.is(t, 30*time.Second, "pod/full", ready, "True")
	fill := `dd if=/dev/zero of=/data/$1 bs=1M count=60 2>&1 || true`
	if said := u.sh(t, "full", "set -- a; "+fill); !strings.Contains(said, "No space left on device") {
		t.Fatalf("60 MiB fit into a volume of 40 MiB: %s", said)
	}
	u.kubectl(t, "patch", "pvc", "full", "-p", `{"spec":{"resources":{"requests":{"storage":"200Mi"}}}}`)
	u.is(t, 20*time.Second, "pvc/full", "{.status.capacity.storage}", "200Mi")
	if said := u.sh(t, "full", "set -- b; "+fill); strings.Contains(said, "No space left on device") {
		t.Errorf("the grown volume is still full: %s", said)
	}
	u.kubectl(t, "delete", "pod/full", "pvc/full")
}
