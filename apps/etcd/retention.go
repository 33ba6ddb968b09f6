package etcd

import (
	"fmt"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Retains reports whether volumes outlive the cluster. Governor deletes the last copy of data
// only if the user requests it.
func Retains(want *etcdv1.EtcdCluster) bool {
	return !Volatile(want) && want.Spec.Storage.Retention != etcdv1.RetentionDelete
}

func retention(want *etcdv1.EtcdCluster) etcdv1.Retention {
	if Retains(want) {
		return etcdv1.RetentionRetain
	}
	return etcdv1.RetentionDelete
}

// volumeRetention is what Kubernetes does with the volumes if the cluster is deleted now. The
// admission policy governor-retention reads it. The status says Delete before the first volume
// has an owner: a crash in between must not hide that owner from the policy.
func volumeRetention(want *etcdv1.EtcdCluster, seen World) etcdv1.Retention {
	switch {
	case Volatile(want):
		return ""
	case !Retains(want), seen.count(func(m Member) bool { return ours(m) && m.Volume.Owned }) > 0:
		return etcdv1.RetentionDelete
	}
	return etcdv1.RetentionRetain
}

// Protect is one of the [Abilities]: volumes that the present spec retains are retained, whatever the
// earlier spec has.
func (Planner) Protect(now, earlier *etcdv1.EtcdCluster) {
	if Retains(now) {
		earlier.Spec.Storage.Retention = now.Spec.Storage.Retention
	}
}

// wrongOwners makes the cluster the owner of its volumes, or removes that owner. Kubernetes'
// garbage collection deletes owned objects and no others, even while the operator is down.
func wrongOwners(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if Volatile(want) {
		return lifecycle.Decision{}
	}
	if _, differs := seen.find(func(m Member) bool { return ours(m) && wrongOwner(want, m.Volume) }); !differs {
		return lifecycle.Decision{}
	}
	if !Retains(want) && want.Status.VolumeRetention != etcdv1.RetentionDelete {
		return lifecycle.RetryIn(time.Millisecond, "RecordingRetention", "Governor is recording in the status that the volumes will be deleted with the cluster.")
	}
	message := "The volumes of %s will be deleted with it."
	if Retains(want) {
		message = "The volumes of %s will stay when it is deleted."
	}
	s := step(SetRetention, Member{Name: want.Name}, "RetentionChanged", message, want.Name).WithArgs(retentionArgs{retention(want)})
	if Retains(want) {
		s = repair(s) // no policy holds what protects the data
	}
	s.Cause = lifecycle.CauseSpecChange
	return lifecycle.Proceed(s)
}

// wrongOwner reports that the volume would be deleted with the cluster and should not, or the reverse.
// A claim that a user created gets no owner, and may have one, as a copy of the earlier claim.
func wrongOwner(want *etcdv1.EtcdCluster, v Volume) bool {
	if Retains(want) {
		return v.Exists && v.Owned
	}
	return v.Exists && !v.Owned && !v.OfUser()
}

// teardown is the only step of a deletion; Kubernetes does the rest. It does not query etcd, which
// may be down. Policies are asked about it also if others have deleted the members: while they hold
// the deletion, the members return.
func teardown(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if seen.TornDown {
		return lifecycle.Settled("MembersDeleted", "No member is left.")
	}
	s := step(DeleteCluster, Member{Name: want.Name}, "ClusterDeleted", "%s", teardownSentence(want, seen))
	s = class(s, lifecycle.ClassIrreversible).WithArgs(retentionArgs{retention(want)})
	if seen.count(func(m Member) bool { return deletedVolumes(want, m) }) == 0 && Retains(want) {
		s.Class = lifecycle.ClassDisruptive
	}
	return lifecycle.Proceed(s)
}

// deletedVolumes reports whether the volume is deleted with the cluster. A doomed one lasts only
// as long as its pod.
func deletedVolumes(want *etcdv1.EtcdCluster, m Member) bool {
	return ours(m) && m.Volume.Exists && (m.Volume.Owned || m.Volume.doomed() || !Retains(want) && !m.Volume.Restored)
}

// teardownSentence describes what a deletion removes and what it keeps, and how to change that.
func teardownSentence(want *etcdv1.EtcdCluster, seen World) string {
	deleted := seen.count(func(m Member) bool { return deletedVolumes(want, m) })
	kept := seen.count(func(m Member) bool { return ours(m) && m.Volume.Exists }) - deleted
	said := "The members of " + want.Name + " are deleted"
	switch {
	case len(seen.Members) == 0:
		return "No member and no volume of " + want.Name + " is left in Kubernetes."
	case Volatile(want):
		return fmt.Sprintf("%s, and all data with them: spec.storage.medium %s has no volume to keep.", said, want.Spec.Storage.Medium)
	case Retains(want) && seen.count(claimTerminating) == deleted && deleted > 0:
		return fmt.Sprintf("%s, and the data of %d of them: their volumes are being deleted already. This cannot be undone; "+
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
