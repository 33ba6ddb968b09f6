package driver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// mounts remembers the claim of each pod that has mounted its volume. The pod names its claim and not its UID, so
// that a claim that was created again later would seem to be the same.
type mounts struct {
	mu       sync.Mutex
	clusters map[types.UID]map[types.UID]types.UID // the UIDs of claims, by those of the cluster and of the pod
}

// same reports that the pod is known to have mounted the volume of this claim.
func (m *mounts) same(want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim, found *corev1.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return claim.Spec.VolumeName != "" && m.clusters[want.UID][found.UID] == claim.UID
}

// earlier reports that the pod has the volume of another claim than this one, which is nil if there is none. A claim
// without a volume cannot be the one that a pod has mounted.
func (m *mounts) earlier(want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim, found *corev1.Pod) bool {
	if claim == nil || claim.Spec.VolumeName == "" {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch known, ok := m.clusters[want.UID][found.UID]; {
	case ok:
		return known != claim.UID
	case createdAfterSchedule(claim, found):
		return true
	}
	const most = 10_000 // limits the memory, also for clusters that were deleted
	if len(m.clusters) >= most || m.clusters == nil {
		m.clusters = map[types.UID]map[types.UID]types.UID{}
	}
	if m.clusters[want.UID] == nil {
		m.clusters[want.UID] = map[types.UID]types.UID{}
	}
	m.clusters[want.UID][found.UID] = claim.UID
	return false
}

// keep forgets the cluster's pods that no longer exist.
func (m *mounts) keep(want *etcdv1.EtcdCluster, pods map[string]*corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.clusters[want.UID], func(known, _ types.UID) bool {
		for _, p := range pods {
			if p != nil && p.UID == known {
				return false
			}
		}
		return true
	})
}

// clockSkew is how far the clocks of the API servers and of the scheduler may be apart.
const clockSkew = time.Minute

// createdAfterSchedule reports that the claim is newer than the pod's place on its node, which needs a claim. It holds
// also for an operator that has just started, and remembers no pod.
func createdAfterSchedule(claim *corev1.PersistentVolumeClaim, found *corev1.Pod) bool {
	for _, c := range found.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return claim.CreationTimestamp.Sub(c.LastTransitionTime.Time) > clockSkew
		}
	}
	return false
}

// restored reports that the claim was created after the StatefulSet of its member. Governor creates the claim first, except
// before the cluster has formed, where the claim has its owner from the beginning.
func restored(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet) bool {
	return claim != nil && set != nil && claim.CreationTimestamp.Sub(set.CreationTimestamp.Time) > clockSkew
}

// hasMounted reports that the pod has its volume mounted: the kubelet starts containers afterwards, and unmounts
// the volume once the pod has ended.
func hasMounted(found *corev1.Pod) bool {
	if found == nil || found.Status.Phase == corev1.PodSucceeded || found.Status.Phase == corev1.PodFailed {
		return false
	}
	started := func(s corev1.ContainerStatus) bool { return s.ContainerID != "" }
	return slices.ContainsFunc(found.Status.ContainerStatuses, started) || slices.ContainsFunc(found.Status.InitContainerStatuses, started)
}

// findEarlierClaims adds whose claims were deleted under their pods. What the cache has of a claim may be older than
// what it has of the pod, so that the API server is asked once for each pod.
func (d *Driver) findEarlierClaims(ctx context.Context, want *etcdv1.EtcdCluster, p parts, seen etcd.World) error {
	for i := range seen.Members {
		m := &seen.Members[i]
		claim, found := p.claims[m.Name], p.pods[m.Name]
		if !holdsData(want, seen, *m, found) || claim != nil && d.mounts.same(want, claim, found) {
			continue
		}
		if claim != nil { // otherwise gather has asked the API server
			claim = &corev1.PersistentVolumeClaim{}
			exists, err := d.find(ctx, want, etcd.ClaimName(want, m.Name), claim)
			if err != nil {
				return err
			}
			if !exists {
				claim = nil
			}
		}
		if d.mounts.earlier(want, claim, found) {
			m.Volume.Exists, m.Volume.Earlier = true, true
		}
	}
	d.mounts.keep(want, p.pods)
	return nil
}

// holdsData reports that the pod has mounted a volume which may have data. Before a cluster has formed, no volume has
// any, and a claim is created again.
func holdsData(want *etcdv1.EtcdCluster, seen etcd.World, m etcd.Member, found *corev1.Pod) bool {
	return !etcd.Volatile(want) && !m.Unmanaged && !etcd.Unformed(want, seen, m) && hasMounted(found)
}

// deletedUnderPod reports that the claim, as the API server has it now, is not the one that the member's pod has
// mounted.
func (d *Driver) deletedUnderPod(want *etcdv1.EtcdCluster, v view, member string, claim *corev1.PersistentVolumeClaim) bool {
	at := slices.IndexFunc(v.world.Members, func(m etcd.Member) bool { return m.Name == member })
	found := v.parts.pods[member]
	return at >= 0 && holdsData(want, v.world, v.world.Members[at], found) && d.mounts.earlier(want, claim, found)
}
