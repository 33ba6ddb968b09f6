package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// growVolume grows volumes that can grow. Growth disturbs no member and needs no quorum, and a
// member with a full disk serves only after it.
func growVolume(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return tooSmall(want, seen, m) && m.Volume.Problem == "" && !m.Volume.Pending })
	if !ok {
		return lifecycle.Decision{}
	}
	size := want.Spec.Storage.Size
	s := step(GrowVolume, m, "VolumeTooSmall", "The volume of %s grows to %s.", m.Name, size)
	return lifecycle.Proceed(s.WithArgs(GrowArgs{size.Value()}))
}

// stuckVolume reports a volume that Kubernetes does not let grow. Repairs precede it.
func stuckVolume(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return tooSmall(want, seen, m) && m.Volume.Problem != "" })
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("VolumeCannotGrow", fmt.Sprintf(
		"The volume of %s cannot grow to %s: %s. Remove the cause; spec.storage.size cannot be reduced, because volumes only grow.",
		m.Name, want.Spec.Storage.Size, m.Volume.Problem))
}

// tooSmall reports that the member stays, and that its volume is smaller than declared.
func tooSmall(want *etcdv1.EtcdCluster, seen World, m Member) bool {
	size := want.Spec.Storage.Size
	if Volatile(want) || size == nil || !ours(m) || seen.Listed && !listed(m) {
		return false
	}
	return m.Volume.Exists && !m.Volume.Lost && !m.Volume.doomed() && m.Volume.Size < size.Value()
}

// restartAfterGrowth recreates the pod of a member that could not run before its volume grew.
// Some storage grows the filesystem only at a mount, and the kubelet waits up to five minutes
// before it retries a container. A serving member keeps its pod.
func restartAfterGrowth(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return m.Volume.AwaitsPod && couldNotRun(m) && !m.Pod.Leaving && !seen.serving(m) && !m.Volume.doomed() && !obstructed(m)
	})
	if !ok || Volatile(want.EtcdCluster) {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(repair(restart(want, m, want.after(m), "VolumeGrown",
		"%s could not run, and its volume has grown since; Governor restarts it.", m.Name)))
}

// couldNotRun reports that etcd terminated and the pod has not been ready since, whether the kubelet
// waits before the next attempt or has just made one.
func couldNotRun(m Member) bool {
	return m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff || m.Pod.LastWords != ""
}

const (
	// logSpace is the log's maximum share of a volume: five files of 64 MiB that etcd keeps
	// (--max-wals), one that it writes and two that it reserves.
	logSpace = 512 << 20
	// maxQuota is the largest quota that etcd recommends, and defaultQuota its default.
	maxQuota     = 8 << 30
	defaultQuota = 2 << 30
)

// quota is the size of the database at which etcd refuses writes; 0 leaves the default to etcd.
// It leaves room on the volume for a second copy, which a snapshot from the leader needs.
func quota(want *etcdv1.EtcdCluster, seen World) int64 {
	size := want.Spec.Storage.Size
	switch q := want.Spec.Options.Quota; {
	case q != nil:
		return q.Value()
	case size == nil || setsQuota(want):
		return 0
	}
	room := usable(size.Value(), seen)
	fits := min(max(room/4, (room-logSpace)/2), maxQuota)
	largest := largestDatabase(want, seen)
	return max(fits, min(2*largest, defaultQuota), withRoom(largest))
}

// quotaTooSmall blocks a change that gives a member a smaller quota than a database needs: etcd would raise the alarm NOSPACE
// and refuse all writes (https://etcd.io/docs/latest/op-guide/maintenance/#space-quota). Before 3.6 a member does not report
// its quota; only a change of the spec can then have changed it.
func quotaTooSmall(want desired, seen World, m Member) lifecycle.Decision {
	limit := cmp.Or(quota(want.EtcdCluster, seen), defaultQuota)
	if setsQuota(want.EtcdCluster) || m.Quota != 0 && m.Quota <= limit || m.Quota == 0 && !want.hasOtherSpec(m) {
		return lifecycle.Decision{}
	}
	for _, o := range seen.Members {
		if o.DBSize > limit-largestRequest {
			return lifecycle.Block("QuotaTooSmall", fmt.Sprintf("The quota is %s with this spec, and the database of %s has %s: etcd would refuse all writes. "+
				"Raise spec.options.quota, or compact and defragment the members first.", inMebibytes(limit), o.Name, inMebibytes(o.DBSize)))
		}
	}
	return lifecycle.Decision{}
}

// usable is the real size of the smallest volume of a member, if it is less than requested.
func usable(requested int64, seen World) int64 {
	for _, m := range seen.Members {
		if v := m.Volume; ours(m) && m.Set.Exists && v.Capacity > 0 && !v.doomed() && !v.OfUser() && !KeptVolume(seen, m) {
			requested = min(requested, v.Capacity)
		}
	}
	return requested
}

func inMebibytes(n int64) *resource.Quantity {
	return resource.NewQuantity(n>>20<<20, resource.BinarySI)
}

// replacementTooSmall is quotaTooSmall for a member without a volume, which is replaced for a change. The replacement of a member
// whose claim is being deleted is not held: its data lasts only as long as its pod, and NOSPACE refuses writes, but loses none.
func replacementTooSmall(want desired, seen World) lifecycle.Decision {
	if !Volatile(want.EtcdCluster) {
		return lifecycle.Decision{}
	}
	for _, old := range seen.Members {
		if d := quotaTooSmall(want, seen, old); ourListed(old) && d.IsSet() {
			return d
		}
	}
	return lifecycle.Decision{}
}

// oldVolumesCondition says that the data of an earlier cluster of the name is not in this one.
func oldVolumesCondition(want *etcdv1.EtcdCluster, seen World) []lifecycle.Condition {
	if len(seen.OldVolumes) == 0 || len(seen.Orphans) > 0 || seen.Earlier {
		return nil // an earlier cluster may use them
	}
	names := strings.Join(seen.OldVolumes[:min(len(seen.OldVolumes), 6)], " ")
	if more := len(seen.OldVolumes) - 6; more > 0 {
		names = fmt.Sprintf("%s, and %d more", names, more)
	}
	return []lifecycle.Condition{{
		Type: "OldVolumes", Status: metav1.ConditionTrue, Reason: "NotUsed", Message: fmt.Sprintf(
			"%s Their data is not in this cluster. If you do not need it, delete these PersistentVolumeClaims in the namespace %s: %s.",
			oldVolumes(seen), want.Namespace, names),
	}}
}

// oldVolumes describes the volumes of earlier clusters of the name; empty if there are none.
func oldVolumes(seen World) string {
	if len(seen.OldVolumes) == 0 {
		return ""
	}
	return fmt.Sprintf("%d volume(s) of an earlier cluster of this name exist, such as %s, and this cluster does not use them.",
		len(seen.OldVolumes), seen.OldVolumes[0])
}

// volumeGrowthCondition reports a volume that has less than was requested: only the capacity in the claim's status is real.
func volumeGrowthCondition(want *etcdv1.EtcdCluster, seen World) []lifecycle.Condition {
	m, ok := seen.find(func(m Member) bool {
		return ours(m) && !Volatile(want) && m.Volume.Exists && 0 < m.Volume.Capacity && m.Volume.Capacity < m.Volume.Size
	})
	if !ok {
		return nil
	}
	return []lifecycle.Condition{{
		Type: "VolumesGrown", Status: metav1.ConditionFalse, Reason: "Growing", Message: fmt.Sprintf(
			"The volume of %s has %s, and %s are requested. If it stays so, no provisioner grows the volumes of its storage class.",
			m.Name, resource.NewQuantity(m.Volume.Capacity, resource.BinarySI), resource.NewQuantity(m.Volume.Size, resource.BinarySI)),
	}}
}

// setsQuota reports whether the user's environment sets the quota. A flag would override it.
func setsQuota(want *etcdv1.EtcdCluster) bool {
	return slices.ContainsFunc(want.Spec.Pod.Env, func(e corev1.EnvVar) bool { return e.Name == "ETCD_QUOTA_BACKEND_BYTES" })
}

// withRoom is the least quota with which etcd accepts writes to a database of that size.
func withRoom(database int64) int64 {
	if database == 0 {
		return 0
	}
	return database + max(database/20, largestRequest)
}

// largestDatabase is the size of the largest known database. A quota is at least twice that, up to etcd's default: a member
// that ran with the default must not exceed its quota after a restart.
func largestDatabase(want *etcdv1.EtcdCluster, seen World) int64 {
	var largest int64
	for _, m := range seen.Members {
		largest = max(largest, m.DBSize)
	}
	for _, m := range want.Status.Members {
		if m.DBSize != nil {
			largest = max(largest, m.DBSize.Value())
		}
	}
	return largest
}
