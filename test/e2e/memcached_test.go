package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// ask sends one line to a real server and returns the lines up to the end of the answer.
func ask(address, question, end string) (string, error) {
	conn, err := net.DialTimeout("tcp", address, 3*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(question + "\r\n")); err != nil {
		return "", err
	}
	var answer strings.Builder
	for s := bufio.NewScanner(conn); s.Scan(); {
		answer.WriteString(s.Text() + "\n")
		if s.Text() == end {
			return answer.String(), nil
		}
	}
	return "", fmt.Errorf("%s ended without %q: %q", address, end, answer.String())
}

// TestMemcachedServersStoreValues asks real servers, on a port other than the usual one.
func TestMemcachedServersStoreValues(t *testing.T) {
	i := newInstance(t)
	memory := resource.MustParse("256Mi")
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size, spec.ContainerPort, spec.Memory = 2, 22122, &memory })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	for n, pod := range i.pods(t) {
		address := net.JoinHostPort(pod.Status.PodIP, "22122")
		value := fmt.Sprintf("value%d", n)
		if _, err := ask(address, "set key 0 0 6\r\n"+value, "STORED"); err != nil {
			t.Fatal(err)
		}
		if got, err := ask(address, "get key", "END"); err != nil || !strings.Contains(got, value) {
			t.Errorf("the server answers %q, %v", got, err)
		}
		settings, err := ask(address, "stats settings", "END")
		if want := fmt.Sprintf("STAT maxbytes %d\n", 192<<20); err != nil || !strings.Contains(settings, want) {
			t.Errorf("of 256Mi a server must use three quarters (%s), it says %v:\n%s", want, err, settings)
		}
	}
}

// TestUpgradeKeepsServersAvailable changes one field under a client that watches how many servers answer.
func TestUpgradeKeepsServersAvailable(t *testing.T) {
	i := ready(t, 2)
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Version = "1.6.38" })
	eventually(t, "both servers run the new version", func(context.Context) error {
		if err := i.answer(t, 2, "1.6.38"); err == nil {
			return nil
		}
		var m cachev1.Memcached
		if err := api.Get(t.Context(), i.key, &m); err != nil {
			return err
		}
		if m.Status.ReadyReplicas < 2 {
			t.Fatalf("only %d servers answer during the upgrade", m.Status.ReadyReplicas)
		}
		return errNotYet
	})
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
}

func TestTwoInstancesNeverSharePods(t *testing.T) {
	one := ready(t, 2)
	other := &instance{one.key}
	other.key.Name = "cache-too"
	other.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 1 })
	m := other.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	if len(m.Status.Nodes) != 1 || len(one.pods(t)) != 2 {
		t.Errorf("the second instance has %v, the first %d pods", m.Status.Nodes, len(one.pods(t)))
	}
	for _, name := range m.Status.Nodes {
		if !strings.HasPrefix(name, "cache-too-") {
			t.Errorf("the second instance counts pod %s", name)
		}
	}
}

// TestUnschedulable reports what no node has, and recovers when the spec is corrected.
func TestUnschedulable(t *testing.T) {
	i := newInstance(t)
	i.Apply(t, func(spec *cachev1.MemcachedSpec) {
		spec.Size, spec.Pod.NodeSelector = 1, map[string]string{"no-such": "node"}
	})
	i.Settles(t, lifecycle.OutcomeBlocked, "Unschedulable")
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Pod.NodeSelector = nil })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
}

// TestQuota names the quota, and continues by itself when it is raised.
func TestQuota(t *testing.T) {
	i := newInstance(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.key.Namespace, Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}
	if err := api.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	i.Settles(t, lifecycle.OutcomeBlocked, "QuotaExceeded")
	if err := api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
}
