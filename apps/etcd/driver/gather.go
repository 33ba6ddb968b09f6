package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// parts are what Kubernetes has of the members, by their names.
type parts struct {
	sets   map[string]*appsv1.StatefulSet
	claims map[string]*corev1.PersistentVolumeClaim
	pods   map[string]*corev1.Pod
	doors  map[string]*corev1.ConfigMap
}

// gather reads the cache. A StatefulSet that is being deleted is gone already; its pod
// still runs, and a claim still has its data while a pod uses it.
func (d *Driver) gather(ctx context.Context, want *etcdv1.EtcdCluster) (parts, error) {
	var sets appsv1.StatefulSetList
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	var doors corev1.ConfigMapList
	for _, list := range []client.ObjectList{&sets, &claims, &pods, &doors} {
		err := d.client.List(ctx, list, client.InNamespace(want.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingLabels{lifecycle.LabelApp: etcd.Name, lifecycle.LabelInstance: want.Name})
		if err != nil {
			return parts{}, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}
	p := parts{
		sets:   byMember(sets.Items, "", func(s *appsv1.StatefulSet) bool { return alive(s) && metav1.IsControlledBy(s, want) }),
		claims: byMember(claims.Items, etcd.ClaimName(want, ""), func(c *corev1.PersistentVolumeClaim) bool { return incarnate(c, want) }),
		doors:  byMember(doors.Items, etcd.DoorName(""), func(c *corev1.ConfigMap) bool { return metav1.IsControlledBy(c, want) }),
	}
	p.pods = byMember(pods.Items, podName(""), owned(want, sets.Items))
	return p, d.findStripped(ctx, want, p)
}

// owned pods are controlled by a StatefulSet of this very cluster, also by one that is
// being deleted, or were left behind by one: a member that runs must be seen. Before the
// cluster has an ID, by which a member's answer proves that it is one of its own, a pod
// without a controller may be of an earlier cluster of the same name.
func owned(want *etcdv1.EtcdCluster, sets []appsv1.StatefulSet) func(*corev1.Pod) bool {
	own := map[types.UID]bool{}
	for i := range sets {
		own[sets[i].UID] = metav1.IsControlledBy(&sets[i], want)
	}
	return func(pod *corev1.Pod) bool {
		if orphaned(pod) {
			return pod.Name == podName(pod.Labels[etcd.LabelMember]) && want.Status.ClusterID != ""
		}
		return own[metav1.GetControllerOf(pod).UID]
	}
}

func orphaned(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil }

func podName(member string) string { return member + "-0" }

// settling is how long a StatefulSet may take to make its first pod.
const settling = 10 * time.Second

// findStripped adds pods that have lost their labels: the cache cannot tell whose they
// are, and their StatefulSets cannot make others of the same names.
func (d *Driver) findStripped(ctx context.Context, want *etcdv1.EtcdCluster, p parts) error {
	for member, set := range p.sets {
		if p.pods[member] != nil || d.now().Sub(set.CreationTimestamp.Time) < settling {
			continue
		}
		pod := &corev1.Pod{}
		err := d.live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: podName(member)}, pod)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot read the pod of %s: %w", member, err)
		}
		if err == nil && stripped(want, set, pod) {
			p.pods[member] = pod
		}
	}
	return nil
}

// stripped says that the pod was made by the StatefulSet and lacks labels of its
// template. With a volume of its own it is known by that, too.
func stripped(want *etcdv1.EtcdCluster, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	mounts := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == etcd.ClaimName(want, set.Name)
	})
	made := owner == nil && (mounts || etcd.Volatile(want)) || owner != nil && owner.UID == set.UID
	return made && lacksLabels(set, pod)
}

func lacksLabels(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	for key, value := range set.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			return true
		}
	}
	return false
}

func alive(obj metav1.Object) bool { return obj.GetDeletionTimestamp() == nil }

// incarnate says that the volume is this cluster's, and not one that was retained
// of an earlier cluster of the name.
func incarnate(claim *corev1.PersistentVolumeClaim, want *etcdv1.EtcdCluster) bool {
	return claim.Labels[etcd.LabelCluster] == string(want.UID)
}

// byMember finds the objects of members by their names, which are the member's and the
// suffix. Labels do not tell: they can be copied to other objects, and edited.
func byMember[T any, P interface {
	*T
	metav1.Object
}](items []T, suffix string, is func(P) bool) map[string]P {
	all := map[string]P{}
	for i := range items {
		p := P(&items[i])
		if name, ok := strings.CutSuffix(p.GetName(), suffix); ok && name != "" && is(p) {
			all[name] = p
		}
	}
	return all
}
