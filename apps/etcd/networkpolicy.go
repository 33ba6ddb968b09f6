package etcd

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// networkPolicyInEffect is the status' until a step changes it, because a change may cut clients off: policies can
// hold it. It is the present spec's until the cluster has formed, because there are no clients to cut off, and where
// nothing is recorded, as by earlier operators. No record is on an object that other users may edit.
func networkPolicyInEffect(want *etcdv1.EtcdCluster, seen World) etcdv1.NetworkPolicySpec {
	recorded := cmp.Or(seen.NetworkPolicy, want.Status.NetworkPolicy)
	if !formed(want, seen) || recorded == nil {
		return want.Spec.NetworkPolicy
	}
	return *recorded
}

// changedNetworkPolicy puts spec.networkPolicy into effect.
func changedNetworkPolicy(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	from, to := networkPolicyInEffect(want, seen), want.Spec.NetworkPolicy
	if equality.Semantic.DeepEqual(from, to) {
		return lifecycle.Decision{}
	}
	s := step(ConfigureNetworkPolicy, Member{Name: want.Name}, "NetworkPolicyChanged", "%s", networkPolicySentence(to))
	if !admitsAll(from, to) {
		s.Class = lifecycle.ClassDisruptive
	}
	return lifecycle.Proceed(s)
}

func networkPolicySentence(to etcdv1.NetworkPolicySpec) string {
	switch {
	case !to.Enabled:
		return "Governor removes the NetworkPolicy; every pod may connect to the members."
	case len(to.Clients) == 0:
		return "The NetworkPolicy admits every client, and only members and the operator to the peer port."
	}
	return "The NetworkPolicy admits only the clients that spec.networkPolicy.clients selects; others lose their access."
}

// admitsAll reports whether the new configuration visibly admits all that the earlier one admits.
func admitsAll(from, to etcdv1.NetworkPolicySpec) bool {
	switch {
	case !to.Enabled:
		return true
	case !from.Enabled:
		return false // at least the peer port closes
	case len(to.Clients) == 0:
		return true
	case len(from.Clients) == 0:
		return false
	}
	return !slices.ContainsFunc(from.Clients, func(client networkingv1.NetworkPolicyPeer) bool {
		return !slices.ContainsFunc(to.Clients, func(c networkingv1.NetworkPolicyPeer) bool { return equality.Semantic.DeepEqual(client, c) })
	})
}

// withNetworkPolicy returns the world in which the present spec is in effect.
func withNetworkPolicy(want *etcdv1.EtcdCluster, seen World) World {
	seen.NetworkPolicy = want.Spec.NetworkPolicy.DeepCopy()
	return seen
}
