package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Retains reports whether volumes outlive the cluster. Governor deletes the last copy of data
// only if the user requests it.
func Retains(want *etcdv1.EtcdCluster) bool {
	return !Volatile(want) && want.Spec.Storage.Retention != etcdv1.Delete
}

func retention(want *etcdv1.EtcdCluster) string {
	if Retains(want) {
		return string(etcdv1.Retain)
	}
	return string(etcdv1.Delete)
}

// wrongOwners makes the cluster the owner of its volumes, or removes that owner. Kubernetes'
// garbage collection deletes owned objects and no others, even while the operator is down.
func wrongOwners(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if Volatile(want) {
		return lifecycle.Decision{}
	}
	_, differs := seen.find(func(m Member) bool { return ours(m) && m.Volume.Exists && m.Volume.Owned == Retains(want) })
	if !differs {
		return lifecycle.Decision{}
	}
	message := "The volumes of %s will be deleted with it."
	if Retains(want) {
		message = "The volumes of %s will stay when it is deleted."
	}
	s := step(SetRetention, Member{Name: want.Name}, "RetentionChanged", message, want.Name)
	s = repair(with(s, ArgRetention, retention(want))) // so that it delays no repair
	s.Cause = lifecycle.CauseSpecChange
	return lifecycle.Proceed(s)
}

// teardown is the only step of a deletion; Kubernetes does the rest. It does not query etcd,
// which may be down.
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

// deletedVolumes reports whether the volume is deleted with the cluster. A claim that is being
// deleted lasts only as long as its pod.
func deletedVolumes(want *etcdv1.EtcdCluster, m Member) bool {
	return ours(m) && m.Volume.Exists && (m.Volume.Owned || m.Volume.Terminating || !Retains(want))
}

// teardownSentence describes what a deletion removes and what it keeps, and how to change that.
func teardownSentence(want *etcdv1.EtcdCluster, seen World) string {
	deleted := seen.count(func(m Member) bool { return deletedVolumes(want, m) })
	kept := seen.count(func(m Member) bool { return ours(m) && m.Volume.Exists }) - deleted
	said := "The members of " + want.Name + " are deleted"
	switch {
	case Volatile(want):
		return fmt.Sprintf("%s, and all data with them: spec.storage.medium %s has no volume to keep.", said, want.Spec.Storage.Medium)
	case Retains(want) && seen.count(claimTerminating) == deleted && deleted > 0:
		return fmt.Sprintf("%s, and the data of %d of them: their PersistentVolumeClaims are being deleted already. This cannot be undone; "+
			"to keep the data, wait until Governor has replaced these members.", said, deleted)
	case deleted > 0:
		return fmt.Sprintf("%s, and %s with all data. This cannot be undone; to keep the data, set spec.storage.retention to Retain first.",
			said, volumesOf(deleted))
	}
	return fmt.Sprintf("%s, and %s with the data. To delete the data too: kubectl delete pvc -n %s -l %s=%s",
		said, staying(kept), want.Namespace, LabelCluster, want.UID)
}

func volumesOf(n int) string {
	if n == 1 {
		return "its volume is deleted"
	}
	return fmt.Sprintf("their %d volumes are deleted", n)
}

func staying(n int) string {
	if n == 1 {
		return "the volume stays"
	}
	return fmt.Sprintf("their %d volumes stay", n)
}
