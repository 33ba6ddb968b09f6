package driver

import (
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestOnlyPodsOfTheNamespaceAreDialed tries addresses that a tenant might write into a
// member list.
func TestOnlyPodsOfTheNamespaceAreDialed(t *testing.T) {
	pod := func(namespace, ip string, host bool) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p" + ip},
			Spec:       corev1.PodSpec{HostNetwork: host}, Status: corev1.PodStatus{PodIP: ip},
		}
	}
	byIP := func(o client.Object) []string { return []string{o.(*corev1.Pod).Status.PodIP} }
	d := &Driver{live: fake.NewClientBuilder().WithIndex(&corev1.Pod{}, "status.podIP", byIP).WithObjects(
		pod("ns", "10.0.0.1", false), pod("other", "10.0.0.2", false), pod("ns", "10.0.0.3", true)).Build()}
	for address, want := range map[string]string{
		"https://10.0.0.1:2379":     "10.0.0.1:2379",
		"https://10.0.0.1":          "",
		"https://10.0.0.2:2379":     "", // a pod of another namespace
		"https://10.0.0.3:10250":    "", // a node
		"https://169.254.169.254:1": "", // a cloud's metadata
		"https://127.0.0.1:8080":    "", // the operator itself
		"https://no.invalid:2379":   "",
		"unix:///var/run/etcd.sock": "",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := d.podAddress(t.Context(), "ns", u); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
