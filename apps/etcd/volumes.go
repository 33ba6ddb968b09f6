package etcd

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

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
	fits := min(max(size.Value()/4, (size.Value()-logSpace)/2), maxQuota)
	return max(fits, minQuota(want, seen))
}

// setsQuota reports whether the user's environment sets the quota. A flag would override it.
func setsQuota(want *etcdv1.EtcdCluster) bool {
	return slices.ContainsFunc(want.Spec.Pod.Env, func(e corev1.EnvVar) bool { return e.Name == "ETCD_QUOTA_BACKEND_BYTES" })
}

// minQuota is twice the largest known database, up to etcd's default quota: a member that ran
// with the default must not exceed its quota after a restart.
func minQuota(want *etcdv1.EtcdCluster, seen World) int64 {
	var largest int64
	for _, m := range seen.Members {
		largest = max(largest, m.DBSize)
	}
	for _, m := range want.Status.Members {
		if m.DBSize != nil {
			largest = max(largest, m.DBSize.Value())
		}
	}
	return min(2*largest, defaultQuota)
}
