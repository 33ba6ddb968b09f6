// Package etcd knows how to run etcd clusters. [Planner.Next] is the runbook.
//
// # Members
//
// A member is a StatefulSet of one with a volume of its own, named
// <cluster>-<number>; numbers are never used again. Its pod is <member>-0 and its
// volume carries the cluster's UID in its name, so that a later cluster of the
// same name cannot mount it by accident.
//
// # Identity
//
// A member that lost its data must never come back under its old identity: it
// would have forgotten what it acknowledged and whom it voted for. So each member
// has a [Door], a ConfigMap with the etcd settings that are read only by a member
// without data. The kubelet reads it anew at each start of the container. The door
// stands open exactly until the member was seen to have started; from then on it
// is shut: a member with data ignores it, and one without data finds settings that
// do not name it and exits ("couldn't find local name"; tried on 3.5, 3.6 and
// 3.7). Since the phase of life is not in the pod template, no change of phase
// restarts anything. What is left is the moment between a member's first start and
// the operator's next turn: data wiped in it, while no other member can be reached
// to object, would not be noticed.
//
// # Two systems
//
// A member lives in etcd's member list and in Kubernetes. It is added to etcd
// first and to Kubernetes second, and taken from etcd first and from Kubernetes
// second. So after a crash between the two, whoever is in the list without a
// StatefulSet is being added, and whoever has parts in Kubernetes without being in
// the list is being removed; both are finished before any wish.
package etcd

// Name is the application's name in labels and metrics.
const Name = "etcd"

// Planner is etcd's judgement. It has no state.
type Planner struct {
	// Operator is the namespace that the operator's pods are in, which a NetworkPolicy
	// always lets in; empty if the operator does not run in the cluster.
	Operator string
}
