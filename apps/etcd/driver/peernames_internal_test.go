package driver

import (
	"crypto/x509"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// TestPeerNames: what etcd refuses between members is named before they start.
func TestPeerNames(t *testing.T) {
	const called, caller = "*.e.ns.svc", "*.e.ns.svc.cluster.local"
	cases := map[string]struct {
		reason string
		size   int32
		domain string
		names  []string
		ip     string
		want   string // empty: nothing is certain to fail
	}{
		"One":       {"no other member calls it", 1, "", []string{called}, "", ""},
		"Both":      {"the names of the documentation", 3, "", []string{called, caller, "e-client.ns.svc", "localhost"}, "", ""},
		"NoCaller":  {"DNS returns names below the cluster's domain", 3, "", []string{called, "e-client.ns.svc", "localhost"}, "127.0.0.1", caller},
		"NoCalled":  {"peer URLs have no domain", 3, "", []string{caller}, "", called},
		"Domain":    {"peer URLs have the domain", 3, "corp", []string{"*.e.ns.svc.corp"}, "", ""},
		"NoDomain":  {"peer URLs have the domain", 3, "corp", []string{called}, "", "*.e.ns.svc.corp"},
		"Guessed":   {"the domain of the Kubernetes cluster may be another", 3, "", []string{called, "*.e.ns.svc.corp"}, "", ""},
		"Members":   {"etcd resolves the names of pods", 3, "", []string{"e-0-0.e.ns.svc", "e-1-0.e.ns.svc"}, "", ""},
		"Addresses": {"etcd compares addresses, too", 3, "", []string{called}, "10.0.0.1", ""},
		"Foreign":   {"no member has the name", 3, "", []string{"wrong.example.com"}, "10.0.0.1", called},
		"Partly":    {"DNS may resolve it to a member", 3, "", []string{called, "wrong.example.com"}, "", ""},
		"None":      {"etcd checks no names", 3, "", nil, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}, Spec: etcdv1.EtcdClusterSpec{Size: c.size, ClusterDomain: c.domain}}
			leaf := &x509.Certificate{DNSNames: c.names}
			if got := namesForPeers(skipping(want)).missing(leaf); got == caller || got == called && c.want != called {
				t.Errorf("etcd compares no names of callers, and %q is missing", got)
			}
			if c.ip != "" {
				leaf.IPAddresses = []net.IP{net.ParseIP(c.ip)}
			}
			if got := namesForPeers(want).missing(leaf); got != c.want {
				t.Errorf("%s: missing %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func skipping(want *etcdv1.EtcdCluster) *etcdv1.EtcdCluster {
	want = want.DeepCopy()
	want.Spec.Pod.Env = []corev1.EnvVar{{Name: "ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION", Value: "true"}}
	return want
}

// TestKeyNamesOfUnusableSecrets: StatefulSets are compared with their declaration also while a Secret cannot be used,
// unless the names of its keys are unknown.
func TestKeyNamesOfUnusableSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		data    map[string][]byte
		unknown bool
	}{
		"Good":    {data(t, noon.Add(time.Hour), standardKeys), false},
		"Expired": {data(t, noon.Add(-time.Hour), standardKeys), false},
		"Legacy":  {data(t, noon.Add(-time.Hour), peer), false},
		"Absent":  {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			u := secretRef{"peer", "own-peer", peer}
			s := &corev1.Secret{Data: c.data}
			h := userSecret{secretRef: u, secret: s, legacy: isLegacy(s, u)}
			if k := combine([]userSecret{h}); k.unknown != c.unknown {
				t.Errorf("unknown is %v", k.unknown)
			}
		})
	}
}
