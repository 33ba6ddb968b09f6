package e2e_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// must runs kubectl.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInstancesServeWhileOperatorIsStopped: instances continue to run, Kubernetes replaces their pods, and the operator makes a pending
// change after its return.
func TestInstancesServeWhileOperatorIsStopped(t *testing.T) {
	baseline(t)
	i := ready(t, 2)
	must(t, "-n", "governor-system", "scale", "deployment/governor", "--replicas=0")
	must(t, "-n", "governor-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=governor", "--timeout=5m")
	i.LosePod(t, i.pods(t)[0].Name)
	eventually(t, "two servers answer without an operator", func(context.Context) error { return i.answer(t, 2, "1.6.18") })
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 3 })
	if err := install(); err != nil {
		t.Fatal(err)
	}
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
}

// answer reports whether the given number of real servers report that version.
func (i *instance) answer(t *testing.T, want int, version string) error {
	t.Helper()
	got := 0
	for _, p := range i.pods(t) {
		if p.DeletionTimestamp == nil && p.Status.PodIP != "" {
			if _, err := ask(net.JoinHostPort(p.Status.PodIP, "11211"), "version", "VERSION "+version); err == nil {
				got++
			}
		}
	}
	if got != want {
		return fmt.Errorf("%w: %d of %d servers answer", errNotYet, got, want)
	}
	return nil
}

// TestStandbyTakesOver: the standby takes over.
func TestStandbyTakesOver(t *testing.T) {
	baseline(t)
	i := ready(t, 1)
	holder := must(t, "-n", "governor-system", "get", "lease", "governor.governor.dev", "-o", "jsonpath={.spec.holderIdentity}")
	pod, _, _ := strings.Cut(holder, "_")
	must(t, "-n", "governor-system", "delete", "pod", pod, "--grace-period=0", "--force")
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 2 })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	if now := must(t, "-n", "governor-system", "get", "lease", "governor.governor.dev", "-o", "jsonpath={.spec.holderIdentity}"); now == holder {
		t.Errorf("%s still holds the lease", now)
	}
}

// TestAPIServerOutage: caches and etcd answer during the outage; afterwards the operator continues by itself.
func TestAPIServerOutage(t *testing.T) {
	baseline(t)
	i, c := ready(t, 2), alone(t, 3)
	pods, w := i.pods(t), c.write(t)
	eventually(t, "a client writes to etcd", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
	before, began := restarts(t), time.Now()
	hurt(t, "apiserver", "stop")
	t.Cleanup(func() { hurt(t, "apiserver", "start") })
	end := time.NewTimer(time.Minute)
	every := time.NewTicker(5 * time.Second)
	defer every.Stop()
	for away := true; away; {
		select {
		case <-every.C:
		case <-end.C:
			away = false
		}
		for _, p := range pods {
			if _, err := ask(net.JoinHostPort(p.Status.PodIP, "11211"), "version", "VERSION 1.6.18"); err != nil {
				t.Fatal("a server must answer while the API server is away:", err)
			}
		}
	}
	if gap := w.LongestGap(began); gap > election {
		t.Errorf("during the outage of the API server no client could write to etcd for %s", gap)
	}
	hurt(t, "apiserver", "start")
	eventually(t, "the API server takes a wish", func(context.Context) error { return i.scaleTo(t, 3) })
	// The process continues and knows the Lease, so it does not wait until the Lease expires.
	within(t, 10*time.Second, "the operator passes it on", func(context.Context) error { return i.provided(t, 3) })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	for pod, count := range restarts(t) {
		if count != before[pod] {
			t.Errorf("pod %s of the operator restarted %d times in the outage", pod, count-before[pod])
		}
	}
	same(t, c.get(t), c.settled(t))
	kept(t, w)
}

// provided reports whether the Deployment requests the given number of pods. Kubernetes' controllers take up to a
// minute after an outage to resume.
func (i *instance) provided(t *testing.T, size int32) error {
	t.Helper()
	var d appsv1.Deployment
	if err := api.Get(t.Context(), i.key, &d); err != nil {
		return err
	}
	if *d.Spec.Replicas != size {
		return fmt.Errorf("%w: the Deployment has %d replicas", errNotYet, *d.Spec.Replicas)
	}
	return nil
}

func (i *instance) scaleTo(t *testing.T, size int32) error {
	t.Helper()
	m := &cachev1.Memcached{}
	if err := api.Get(t.Context(), i.key, m); err != nil {
		return err
	}
	m.Spec.Size = size
	return api.Update(t.Context(), m)
}

// sameNames reports whether every pod of before is among after.
func sameNames(before, after []corev1.Pod) bool {
	there := map[string]bool{}
	for _, p := range after {
		there[p.Name] = true
	}
	for _, p := range before {
		if !there[p.Name] {
			return false
		}
	}
	return true
}

// TestNodeLoss: its servers move to another node, and the status is correct meanwhile.
func TestNodeLoss(t *testing.T) {
	baseline(t)
	i := ready(t, 3)
	node := i.pods(t)[0].Spec.NodeName
	hurt(t, "node", "stop", node)
	t.Cleanup(func() { hurt(t, "node", "start", node) })
	i.Settles(t, lifecycle.OutcomeWait, "RollingOut")
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	for _, p := range i.pods(t) {
		if p.DeletionTimestamp == nil && p.Spec.NodeName == node {
			t.Errorf("pod %s is still counted on to the lost node", p.Name)
		}
	}
}

// TestCRDRemovalAndReturn: the operator continues to run, and reconciles again when the CRD is restored.
func TestCRDRemovalAndReturn(t *testing.T) {
	baseline(t)
	const crd = "memcacheds.cache.example.com"
	if err := install(); err != nil {
		t.Fatal(err)
	}
	before := restarts(t)
	must(t, "delete", "crd", crd, "--timeout=5m")
	if err := install(); err != nil {
		t.Fatal(err)
	}
	must(t, "wait", "--for=condition=Established", "crd/"+crd, "--timeout=30s")
	ready(t, 1)
	for pod, count := range restarts(t) {
		if old, there := before[pod]; there && old != count {
			t.Errorf("pod %s of the operator restarted %d times", pod, count-old)
		}
	}
}

// restarts counts the restarts of the operator's pods.
func restarts(t *testing.T) map[string]int32 {
	t.Helper()
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace("governor-system")); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int32{}
	for _, p := range pods.Items {
		for _, c := range p.Status.ContainerStatuses {
			counts[p.Name] += c.RestartCount
		}
	}
	return counts
}

// TestNamespaceDeletionWhileOperatorIsDown: nothing delays it.
func TestNamespaceDeletionWhileOperatorIsDown(t *testing.T) {
	baseline(t)
	i := ready(t, 1)
	must(t, "-n", "governor-system", "scale", "deployment/governor", "--replicas=0")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.key.Namespace}}
	if err := api.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: %w", errNotYet, err)
	})
}

// TestUninstall removes the operator but not its CRDs: instances continue to run, and a new installation adopts them
// without a restart.
func TestUninstall(t *testing.T) {
	baseline(t)
	i := ready(t, 2)
	pods := i.pods(t)
	must(t, "delete", "namespace", "governor-system", "--timeout=5m")
	if err := i.answer(t, 2, "1.6.18"); err != nil {
		t.Error("servers must run on without the operator:", err)
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 3 })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	if !sameNames(pods, i.pods(t)) {
		t.Error("a new installation restarted servers")
	}
}

// TestOperatorRolesSuffice reads the operator's log: its roles must have permitted all of its requests.
func TestOperatorRolesSuffice(t *testing.T) {
	ready(t, 1)
	logs := must(t, "-n", "governor-system", "logs", "-l", "app.kubernetes.io/name=governor", "--tail=-1")
	for line := range strings.Lines(logs) {
		// Kubernetes refuses objects in a namespace that ends, whatever the roles are.
		if strings.Contains(line, "forbidden") && !strings.Contains(line, "being terminated") {
			t.Error("the operator was refused something: " + line)
		}
	}
}
