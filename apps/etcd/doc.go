// Package etcd contains the rules for running etcd clusters. [Planner.Next] lists them in order
// of precedence.
//
// # Members
//
// A member is a StatefulSet with one replica and its own volume, named <cluster>-<number>.
// Member numbers are never reused. The member's pod is <member>-0. The name of its volume
// contains the cluster's UID, so a later cluster of the same name cannot mount it by accident.
//
// # Identity
//
// A member that lost its data must never start again under its old identity: it has lost the
// entries it acknowledged and the votes it cast. Each member therefore has a bootstrap ConfigMap
// ([BootstrapConfigName]) with the etcd settings that only a member without data reads. The
// kubelet reads it at each start of the container. The ConfigMap permits a start without data
// ([BootstrapMode]) until Governor has seen the member start, and is disabled from then on. A
// member with data ignores it. A member without data then finds settings that do not name it and
// exits ("couldn't find local name"; tested on 3.5, 3.6 and 3.7). The mode is not part of the
// pod template, so a change of the mode restarts nothing. One window remains between a member's
// first start and the next reconcile: data wiped in that window goes unnoticed if no other
// member is reachable to refuse the member.
//
// # Two systems
//
// A member exists in etcd's member list and in Kubernetes. Governor adds it to etcd first and to
// Kubernetes second, and removes it from etcd first and from Kubernetes second. After a crash
// between the two, a listed member without a StatefulSet is being added, and an unlisted member
// with objects in Kubernetes is being removed. Governor finishes both before any change of the
// spec.
package etcd

// Name is the application's name in labels and metrics.
const Name = "etcd"

// Planner implements the rules for etcd clusters. It has no state.
type Planner struct {
	// Operator is the namespace of the operator's pods, which a NetworkPolicy always admits. It
	// is empty if the operator runs outside of the cluster.
	Operator string
}
