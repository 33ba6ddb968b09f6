package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// notReady is how a lost node looks: its state is unknown.
const notReady = "Unknown"

func (u user) webPodOn(t *testing.T, node string) (name, address string) {
	t.Helper()
	fields := strings.Fields(u.field(t, "pods", "{.items[*]['metadata.name','status.podIP']}", "-l", "app=web", "--field-selector=spec.nodeName="+node))
	if len(fields) != 2 {
		t.Fatalf("web pods on %s: %v", node, fields)
	}
	return fields[0], fields[1]
}

func fetch(address string) error {
	_, err := get("http://" + address + ":8080/")
	return err
}

// othersStayReady tells whether the loss of n2 disturbed another node.
func (u user) othersStayReady(t *testing.T) {
	t.Helper()
	for _, n := range []string{"n1", "n3"} {
		transition := u.field(t, "node/"+n, `{.status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
		at, err := time.Parse(time.RFC3339, transition)
		if err != nil || u.field(t, "node/"+n, ready) != "True" || time.Since(at) < 10*time.Second {
			t.Errorf("node %s was disturbed: ready since %s", n, transition)
		}
	}
}

func testNodeStop(t *testing.T, u user) {
	pod, address := u.webPodOn(t, "n2")
	u.localkube(t, "node", "stop", "n2")
	if fetch(address) == nil {
		t.Error("a pod of the stopped node still answers")
	}
	u.is(t, 20*time.Second, "node/n2", ready, notReady)
	u.othersStayReady(t)
	u.is(t, 10*time.Second, "pod/"+pod, "{.status.phase}", "Running")
	start := time.Now()
	u.localkube(t, "node", "start", "n2")
	u.is(t, 10*time.Second, "node/n2", ready, "True")
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the node was back after %s, want at most 3 s", took)
	}
	u.kubectl(t, "rollout", "status", "daemonset/web", "--timeout=60s")
}

func testNodePause(t *testing.T, u user) { testSilence(t, u, "pause", "resume") }

func testPartition(t *testing.T, u user) { testSilence(t, u, "partition", "heal") }

// testSilence makes n2 fall silent without dying, and undoes it: the same pods answer again.
func testSilence(t *testing.T, u user, do, undo string) {
	_, address := u.webPodOn(t, "n2")
	u.localkube(t, "node", do, "n2")
	if fetch(address) == nil {
		t.Error("a pod of the silent node still answers")
	}
	u.is(t, 20*time.Second, "node/n2", ready, notReady)
	u.othersStayReady(t)
	u.localkube(t, "node", undo, "n2")
	u.is(t, 15*time.Second, "node/n2", ready, "True")
	eventually(t, 10*time.Second, "the pod answers again", func() error { return fetch(address) })
}

// testPartialPartition cuts n2 from n3, and then from the API server only.
func testPartialPartition(t *testing.T, u user) {
	two, _ := u.webPodOn(t, "n2")
	one, addressOne := u.webPodOn(t, "n1")
	_, addressThree := u.webPodOn(t, "n3")
	reach := func(from, to string) error {
		_, err := u.tryKubectl("exec", from, "--", "timeout", "2", "wget", "-q", "-O", "-", "http://"+to+":8080/")
		return err
	}
	u.localkube(t, "node", "partition", "n2", "--from", "n3")
	if reach(two, addressThree) == nil {
		t.Error("n2 still reaches n3")
	}
	if err := reach(two, addressOne); err != nil {
		t.Error("n2 must still reach n1:", err)
	}
	u.localkube(t, "node", "partition", "n2", "--from", "apiserver")
	u.is(t, 20*time.Second, "node/n2", ready, notReady)
	_, addressTwo := u.webPodOn(t, "n2")
	if err := reach(one, addressTwo); err != nil {
		t.Error("n1 must still reach n2:", err)
	}
	u.localkube(t, "node", "heal", "n2")
	u.is(t, 15*time.Second, "node/n2", ready, "True")
	if err := reach(two, addressThree); err != nil {
		t.Error("healed, n2 must reach n3:", err)
	}
}

func testAPIServerStop(t *testing.T, u user) {
	_, address := u.webPodOn(t, "n1")
	u.localkube(t, "apiserver", "stop")
	if _, err := u.tryKubectl("get", "nodes", "--request-timeout=2s"); err == nil {
		t.Error("the stopped API server answers")
	}
	if err := fetch(address); err != nil {
		t.Error("applications must go on:", err)
	}
	u.localkube(t, "apiserver", "start")
	for _, n := range []string{"n1", "n2", "n3"} {
		u.is(t, 20*time.Second, "node/"+n, ready, "True")
	}
}

// testRestart ends the scheduler, as it ends itself after some outages: it is started again, and status says so.
func testRestart(t *testing.T, u user) {
	u.kill(t, "kube-scheduler")
	u.restarted(t, "kube-scheduler", 1)
	u.localkube(t, "apiserver", "stop")
	u.kill(t, "provisioner")
	u.restarted(t, "provisioner", 1)
	if said := u.localkube(t, "status"); !regexp.MustCompile(`kube-apiserver +stopped`).MatchString(said) {
		t.Errorf("the API server must stay stopped while others are restarted:\n%s", said)
	}
	u.localkube(t, "up", "--nodes", "3", "--fast-node-detection", "--kubeconfig", u.kubeconfig)
	if said := u.localkube(t, "status"); !regexp.MustCompile(`kube-apiserver +running`).MatchString(said) {
		t.Errorf("`up` must start what was stopped:\n%s", said)
	}
}

// restarted waits until the component runs again and status tells how often that was necessary.
func (u user) restarted(t *testing.T, component string, times int) {
	t.Helper()
	eventually(t, 10*time.Second, component+" runs again", func() error {
		said, err := u.tryLocalkube("status")
		want := fmt.Sprintf("%s of control-plane ended by itself; restarts: %d,", component, times)
		if err == nil && !strings.Contains(said, want) {
			err = fmt.Errorf("status does not say %q:\n%s", want, said)
		}
		return err
	})
}

// testDeadSupervisor ends what restarts the others: status reports it, and up starts it.
func testDeadSupervisor(t *testing.T, u user) {
	u.kill(t, "supervisor")
	said, err := u.tryLocalkube("status")
	if err == nil || !strings.Contains(said, "supervisor of control-plane has ended") {
		t.Errorf("status does not report the dead supervisor: %v\n%s", err, said)
	}
	u.localkube(t, "up", "--nodes", "3", "--fast-node-detection", "--kubeconfig", u.kubeconfig)
	u.localkube(t, "status")
}

// kill kills one component with signal 9.
func (u user) kill(t *testing.T, component string) {
	t.Helper()
	status, _ := u.tryLocalkube("status")
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == component {
			pid, err := strconv.Atoi(fields[3])
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, component+" is dead", func() error {
				if err := unix.Kill(pid, 0); err == nil {
					return fmt.Errorf("process %d lives", pid)
				}
				return nil
			})
			return
		}
	}
	t.Fatalf("no component %q", component)
}

// testMachineDied kills everything at once, as the end of a session or of a virtual machine does; `up` starts it again. The
// API holds what was true before, and the pods come back with other addresses.
func testMachineDied(t *testing.T, u user) {
	for _, file := range clusterProcesses() {
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
	}
	eventually(t, 10*time.Second, "no process is left", func() error {
		if left := clusterProcesses(); len(left) > 0 {
			return fmt.Errorf("%d processes live", len(left))
		}
		return nil
	})
	u.localkube(t, "up", "--nodes", "3", "--fast-node-detection", "--kubeconfig", u.kubeconfig)
	u.othersStayReady(t)
}

func killControlPlane(t *testing.T, u user) {
	for _, component := range []string{"containerd", "provisioner", "kube-apiserver", "etcd"} {
		u.kill(t, component)
	}
}
