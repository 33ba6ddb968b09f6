package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Gates returns the promises that every step keeps.
func Gates() []lifecycle.Gate[*etcdv1.EtcdCluster, World] {
	return []lifecycle.Gate[*etcdv1.EtcdCluster, World]{KeepsQuorum, OneLearner, KeepsData, OneMinorApart, SnapshotCoversOldLog}
}

// KeepsQuorum promises that a majority of the voters serves, and that a majority answers: pods
// that are not ready may hold the quorum. It is absolute: even without a quorum no step may
// destroy a copy of the data.
var KeepsQuorum = lifecycle.Gate[*etcdv1.EtcdCluster, World]{
	Name: "KeepsQuorum", Absolute: true,
	Violation: unlessDeleted(func(w World) int { return w.missing() + w.short(w.answeringVoter) }),
	Message: func(_ *etcdv1.EtcdCluster, _, during World, _ lifecycle.Step) string {
		return fmt.Sprintf("only %d of %d voters would serve, and %d are needed. It passes when more members serve.",
			during.count(during.servingVoter), during.count(voter), during.quorum())
	},
}

// OneLearner promises that at most one member is joining. etcd allows no second learner, and a
// single change of the list can be undone.
var OneLearner = lifecycle.Gate[*etcdv1.EtcdCluster, World]{
	Name:      "OneLearner",
	Violation: func(_ *etcdv1.EtcdCluster, w World) int { return max(0, w.count(joiningNow)-1) },
	Message: func(*etcdv1.EtcdCluster, World, World, lifecycle.Step) string {
		return "two members would be joining at once. It passes when the first has joined."
	},
}

func joiningNow(m Member) bool { return learner(m) || voter(m) && m.Bootstrap == BootstrapJoin }

// KeepsData promises that no member of etcd's list loses its volume.
var KeepsData = lifecycle.Gate[*etcdv1.EtcdCluster, World]{
	Name:      "KeepsData",
	Violation: unlessDeleted(func(w World) int { return w.count(dataLost) }),
	Message: func(_ *etcdv1.EtcdCluster, _, _ World, s lifecycle.Step) string {
		return "the volume of " + s.Target + ", which etcd counts as a member, would be lost. It passes when the member is removed from etcd."
	},
}

// OneMinorApart promises that running versions are at most one minor release apart, as etcd
// requires.
var OneMinorApart = lifecycle.Gate[*etcdv1.EtcdCluster, World]{
	Name:      "OneMinorApart",
	Violation: func(_ *etcdv1.EtcdCluster, w World) int { return max(0, spread(w)-1) },
	Message: func(_ *etcdv1.EtcdCluster, _, during World, _ lifecycle.Step) string {
		return fmt.Sprintf("members would be %d minor releases apart, and etcd supports one.", spread(during))
	},
}

// spread is the number of minor releases between the oldest and the newest member.
func spread(w World) int {
	low, high := last+1, 0
	for _, m := range w.Members {
		if v, err := parse(planned(m)); err == nil && ours(m) {
			low, high = min(low, v.minor), max(high, v.minor)
		}
	}
	return max(0, high-low)
}

// planned is the version that a member runs now, or will run once it has started.
func planned(m Member) string {
	if m.Version != "" {
		return m.Version
	}
	return m.Set.Version
}

// unlessDeleted is the violation of a promise that ends when the object is deleted.
func unlessDeleted(violation func(World) int) func(*etcdv1.EtcdCluster, World) int {
	return func(want *etcdv1.EtcdCluster, w World) int {
		if isDeleted(want) {
			return 0
		}
		return violation(w)
	}
}
