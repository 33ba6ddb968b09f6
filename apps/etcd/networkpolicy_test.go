package etcd_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// TestNetworkPolicyAdmitsOperator checks the peers of each port.
func TestNetworkPolicyAdmitsOperator(t *testing.T) {
	apps := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}}
	cases := map[string]struct {
		operator string
		clients  []networkingv1.NetworkPolicyPeer
		peers    int // of the client port; 0 means all
		let      bool
	}{
		"Everybody":  {"governor-system", nil, 0, false},
		"Named":      {"governor-system", []networkingv1.NetworkPolicyPeer{apps}, 3, true},
		"FromABench": {"", []networkingv1.NetworkPolicyPeer{apps}, 2, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := wanted(3)
			want.Spec.NetworkPolicy.Enabled, want.Spec.NetworkPolicy.Clients = true, c.clients
			objects, err := etcd.Planner{Operator: c.operator}.Resources(want, serving(3).World)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(objects, func(o lifecycle.Object) bool { _, ok := o.(*networkingv1.NetworkPolicy); return ok })
			for _, rule := range objects[i].(*networkingv1.NetworkPolicy).Spec.Ingress {
				port := rule.Ports[0].Port.IntValue()
				let := slices.ContainsFunc(rule.From, func(p networkingv1.NetworkPolicyPeer) bool {
					return p.NamespaceSelector != nil && p.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == c.operator
				})
				switch {
				case port == 2380 && (len(rule.From) != 1 || let):
					t.Errorf("the peer port is open to %v", rule.From)
				case port != 2380 && (len(rule.From) != c.peers || let != c.let):
					t.Errorf("port %d is open to %d, want %d, the operator: %t", port, len(rule.From), c.peers, let)
				}
			}
		})
	}
}
