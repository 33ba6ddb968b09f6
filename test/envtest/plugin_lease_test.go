package envtest_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What an operator that does not run has written is not taken for the truth.
func TestPluginSaysThatTheOperatorDoesNotRun(t *testing.T) {
	namespace := newNamespace(t)
	m := newMemcached(t, namespace, "m", 1)
	m.Status.ObservedGeneration = 1
	must(t, api.Status().Update(t.Context(), m, client.FieldOwner("chocolate")))
	if said := expect(t, namespace, 0, []string{"memcached/m"}, "status"); strings.Contains(said, "does not run") {
		t.Errorf("a manager without a lease is no operator: %s", said)
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "chocolate-system"}}
	must(t, client.IgnoreAlreadyExists(api.Create(t.Context(), space)))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: space.Name, Name: "chocolate.governor.dev"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("pod-a"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(-time.Hour))),
		},
	}
	must(t, api.Create(t.Context(), lease))
	const says = "The operator chocolate does not run: its lease chocolate-system/chocolate.governor.dev was last renewed at "
	for _, command := range [][]string{{"status"}, {"status", "memcached/m"}, {"why", "memcached/m"}} {
		expect(t, namespace, 0, []string{says}, command...)
	}
	lease.Spec.RenewTime = new(metav1.NowMicro())
	must(t, api.Update(t.Context(), lease))
	if said := expect(t, namespace, 0, []string{"memcached/m"}, "status"); strings.Contains(said, "does not run") {
		t.Errorf("it runs: %s", said)
	}
}
