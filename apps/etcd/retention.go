package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Retains reports whether volumes outlive the cluster: the last copy of data is deleted
// only if the user asks for it.
func Retains(want *etcdv1.EtcdCluster) bool {
	return !Volatile(want) && want.Spec.Storage.Retention != etcdv1.Delete
}

func retention(want *etcdv1.EtcdCluster) string {
	if Retains(want) {
		return string(etcdv1.Retain)
	}
	return string(etcdv1.Delete)
}

// wrongOwners makes the cluster the owner of its volumes, or ends that. Kubernetes'
// garbage collection deletes what has an owner with it, and nothing else, also while the
// operator is away.
func wrongOwners(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if Volatile(want) {
		return lifecycle.Decision{}
	}
	_, differs := seen.find(func(m Member) bool { return ours(m) && m.Volume.Exists && m.Volume.Owned == Retains(want) })
	if !differs {
		return lifecycle.Decision{}
	}
	says := "The volumes of %s will be deleted with it."
	if Retains(want) {
		says = "The volumes of %s will stay when it is deleted."
	}
	s := step(SetRetention, Member{Name: want.Name}, "RetentionChanged", says, want.Name)
	s = repair(with(s, ArgRetention, retention(want))) // it keeps no repair waiting
	s.Cause = lifecycle.CauseSpecChange
	return lifecycle.Proceed(s)
}

// teardown is the one step of a deletion, of which Kubernetes does the rest. It does not
// ask etcd, which may be down.
func teardown(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if _, left := seen.find(func(m Member) bool {
		return ours(m) && (m.Set.Exists || m.Volume.Exists && m.Volume.Owned && !m.Volume.Terminating)
	}); !left {
		return lifecycle.Settled("Dismissed", "No member is left.")
	}
	s := step(DeleteCluster, Member{Name: want.Name}, "ClusterDeleted", "%s", teardownSentence(want, seen))
	s = class(with(s, ArgRetention, retention(want)), lifecycle.ClassIrreversible)
	if seen.count(func(m Member) bool { return deletedVolumes(want, m) }) == 0 && Retains(want) {
		s.Class = lifecycle.ClassDisruptive
	}
	return lifecycle.Proceed(s)
}

// deletedVolumes says that the volume is deleted with the cluster.
func deletedVolumes(want *etcdv1.EtcdCluster, m Member) bool {
	return ours(m) && m.Volume.Exists && (m.Volume.Owned || !Retains(want))
}

// teardownSentence says what a deletion takes and what it leaves, and how to have it otherwise.
func teardownSentence(want *etcdv1.EtcdCluster, seen World) string {
	gone := seen.count(func(m Member) bool { return deletedVolumes(want, m) })
	stay := seen.count(func(m Member) bool { return ours(m) && m.Volume.Exists }) - gone
	said := "The members of " + want.Name + " go"
	switch {
	case Volatile(want):
		return fmt.Sprintf("%s, and all data with them: with spec.storage.medium %s there is no volume that could stay.", said, want.Spec.Storage.Medium)
	case gone > 0:
		return fmt.Sprintf("%s, and %s with all data. That cannot be undone; to keep the data, set spec.storage.retention to Retain first.",
			said, volumesOf(gone))
	}
	return fmt.Sprintf("%s, and %s with the data. To delete the data too: kubectl delete pvc -n %s -l %s=%s",
		said, staying(stay), want.Namespace, LabelCluster, want.UID)
}

func volumesOf(n int) string {
	if n == 1 {
		return "its volume goes"
	}
	return fmt.Sprintf("their %d volumes go", n)
}

func staying(n int) string {
	if n == 1 {
		return "the volume stays"
	}
	return fmt.Sprintf("their %d volumes stay", n)
}
