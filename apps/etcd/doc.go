// Package etcd knows how to run etcd clusters. [Planner.Next] is the runbook.
//
// # Members
//
// A member is a StatefulSet with one replica and a volume of its own, named
// <cluster>-<number>. No number is used twice. The pod is <member>-0. The name of the
// volume contains a digest of the cluster's UID, so that a later cluster of the same name
// cannot mount it by accident.
//
// # Identity
//
// A member that lost its data must never return under its old identity: it has forgotten
// what it acknowledged and for whom it voted. So each member has a [BootstrapConfig], a
// ConfigMap with the etcd settings that only a member without data reads. The kubelet reads
// it at each start of the container. It names the member until the member has started once.
// From then on a member with data ignores it, and a member without data finds settings that
// do not name it and exits ("couldn't find local name"; verified with 3.5, 3.6 and 3.7). The
// pod template does not contain these settings, so their change restarts nothing.
//
// One gap is left between the first start of a member and the next reconcile: the operator
// does not notice data that is wiped then, if no other member can be reached.
//
// # Two systems
//
// A member exists in etcd's member list and in Kubernetes. The operator adds it to etcd
// first and to Kubernetes second, and removes it from etcd first and from Kubernetes
// second. So after a crash between the two, a member of the list without a StatefulSet is
// being added, and a member with objects in Kubernetes that is not in the list is being
// removed. Rules finish both before any change of the spec.
package etcd

// Name is the application's name in labels and metrics.
const Name = "etcd"

// Planner decides about etcd clusters. It has no state.
type Planner struct {
	// Operator is the namespace of the operator's pods. Every NetworkPolicy admits them. It is
	// empty if the operator does not run in the cluster.
	Operator string
}
