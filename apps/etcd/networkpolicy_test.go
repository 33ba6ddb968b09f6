package etcd_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// TestNetworkPolicyAdmitsOperator checks the peers of each port.
func TestNetworkPolicyAdmitsOperator(t *testing.T) {
	apps := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}}
	cases := map[string]struct {
		operator  string
		clients   []networkingv1.NetworkPolicyPeer
		peers     int // of the client port; 0 means all
		operators int // among the peers of the peer port, and of the client port if it has peers
	}{
		"Everybody":  {"governor-system", nil, 0, 1},
		"Named":      {"governor-system", []networkingv1.NetworkPolicyPeer{apps}, 3, 1},
		"FromABench": {"", []networkingv1.NetworkPolicyPeer{apps}, 2, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := wanted(3)
			want.Spec.NetworkPolicy.Enabled, want.Spec.NetworkPolicy.Clients = true, c.clients
			want.Status.NetworkPolicy = &want.Spec.NetworkPolicy
			objects, err := etcd.Planner{Operator: c.operator}.Resources(want, serving(3).World)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(objects, func(o lifecycle.Object) bool { _, ok := o.(*networkingv1.NetworkPolicy); return ok })
			for _, rule := range objects[i].(*networkingv1.NetworkPolicy).Spec.Ingress {
				port := rule.Ports[0].Port.IntValue()
				admitted := 0
				for _, p := range rule.From {
					if p.NamespaceSelector != nil && p.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == c.operator {
						admitted++
					}
				}
				switch {
				case port == 2380 && (len(rule.From) != 1+c.operators || admitted != c.operators):
					t.Errorf("the peer port is open to %v", rule.From)
				case port != 2380 && (len(rule.From) != c.peers || c.peers > 0 && admitted != c.operators):
					t.Errorf("port %d is open to %v, want %d peers", port, rule.From, c.peers)
				}
			}
		})
	}
}

// A change of spec.networkPolicy is a step, which policies can hold. Until it is taken, the
// NetworkPolicy is the one in effect, also if another client deleted it.
func TestNetworkPolicyChangesByAStep(t *testing.T) {
	apps := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}}
	jobs := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "job"}}}
	off, open := etcdv1.NetworkPolicySpec{}, etcdv1.NetworkPolicySpec{Enabled: true}
	one, both := etcdv1.NetworkPolicySpec{Enabled: true, Clients: []networkingv1.NetworkPolicyPeer{apps}}, etcdv1.NetworkPolicySpec{Enabled: true, Clients: []networkingv1.NetworkPolicyPeer{jobs, apps}}
	cases := map[string]struct {
		from, to etcdv1.NetworkPolicySpec
		class    lifecycle.Class
	}{
		"Same":     {one, one, ""},
		"Enabled":  {off, open, lifecycle.ClassDisruptive},
		"Disabled": {one, off, lifecycle.ClassRoutine},
		"Named":    {open, one, lifecycle.ClassDisruptive},
		"Opened":   {one, open, lifecycle.ClassRoutine},
		"Added":    {one, both, lifecycle.ClassRoutine},
		"Removed":  {both, one, lifecycle.ClassDisruptive},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want, seen := wanted(3), serving(3).World
			want.Spec.NetworkPolicy, want.Status.NetworkPolicy = c.from, &c.from
			before := networkPolicyOf(t, want, seen)
			want.Spec.NetworkPolicy = c.to
			s := etcd.Planner{}.Next(want, seen, noon).Step
			if c.class == "" {
				if s.Name == etcd.ConfigureNetworkPolicy {
					t.Errorf("nothing has changed: %s", s)
				}
				return
			}
			if s.Name != etcd.ConfigureNetworkPolicy || s.Class != c.class || s.Intent != lifecycle.IntentChange {
				t.Errorf("got %s, %s, %s, want a change that is %s", s, s.Class, s.Intent, c.class)
			}
			if diff := cmp.Diff(before, networkPolicyOf(t, want, seen)); diff != "" {
				t.Error("the NetworkPolicy changed before the step:", diff)
			}
			_, after := etcd.Planner{}.Effect(want, seen, s)
			if next := (etcd.Planner{}).Next(want, after, noon); next.Step.Name == etcd.ConfigureNetworkPolicy {
				t.Errorf("the step does not end: %s", next)
			}
			want.Status.NetworkPolicy = &c.to
			if diff := cmp.Diff(networkPolicyOf(t, want, seen), networkPolicyOf(t, want, after)); diff != "" {
				t.Error("the NetworkPolicy is not the declared one after the step:", diff)
			}
		})
	}
}

// A held change of spec.networkPolicy stays held, whatever other clients do to the cluster's objects: only the status
// has what is in effect.
func TestNetworkPolicyInEffect(t *testing.T) {
	open := etcdv1.NetworkPolicySpec{Enabled: true}
	cases := map[string]struct {
		reason string
		taken  *etcdv1.NetworkPolicySpec
		status *etcdv1.NetworkPolicySpec
		held   bool
	}{
		"Held":  {"the change waits", nil, &open, true},
		"Older": {"an operator before the status field", nil, nil, false},
		"Taken": {"the step was taken", &etcdv1.NetworkPolicySpec{}, &open, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want, seen := wanted(3), serving(3).World
			want.Spec.NetworkPolicy = etcdv1.NetworkPolicySpec{}
			want.Status.NetworkPolicy, seen.NetworkPolicy = c.status, c.taken
			if held := networkPolicyOf(t, want, seen) != nil; held != c.held {
				t.Errorf("%s: the NetworkPolicy exists: %v", c.reason, held)
			}
			if s := (etcd.Planner{}).Next(want, seen, noon).Step; (s.Name == etcd.ConfigureNetworkPolicy) != c.held {
				t.Errorf("%s: the step is %s", c.reason, s)
			}
			etcd.Planner{}.Status(want, seen)
			if want.Status.NetworkPolicy.Enabled != c.held {
				t.Errorf("%s: the status has %+v", c.reason, want.Status.NetworkPolicy)
			}
		})
	}
}

// networkPolicyOf is the NetworkPolicy among the resources; nil if there is none.
func networkPolicyOf(t *testing.T, want *etcdv1.EtcdCluster, seen etcd.World) *networkingv1.NetworkPolicy {
	t.Helper()
	objects, err := etcd.Planner{}.Resources(want, seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if p, ok := o.(*networkingv1.NetworkPolicy); ok {
			return p
		}
	}
	return nil
}
