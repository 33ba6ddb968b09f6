package driver

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// gather reads the cache. What is being deleted is gone already, but for pods: they
// still run.
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
		sets:   byMember(sets.Items, func(s *appsv1.StatefulSet) bool { return alive(s) && metav1.IsControlledBy(s, want) }),
		claims: byMember(claims.Items, func(c *corev1.PersistentVolumeClaim) bool { return alive(c) && incarnate(c, want) }),
		doors:  byMember(doors.Items, func(c *corev1.ConfigMap) bool { return metav1.IsControlledBy(c, want) }),
	}
	p.pods = byMember(pods.Items, p.owned)
	return p, nil
}

// owned pods are made by a present StatefulSet, or by none and about to be adopted.
func (p parts) owned(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	set := p.sets[pod.Labels[etcd.LabelMember]]
	return set != nil && (owner == nil || owner.UID == set.UID)
}

func alive(obj metav1.Object) bool { return obj.GetDeletionTimestamp() == nil }

// incarnate says that the volume is this cluster's, and not one that was retained
// of an earlier cluster of the name.
func incarnate(claim *corev1.PersistentVolumeClaim, want *etcdv1.EtcdCluster) bool {
	return claim.Labels[etcd.LabelCluster] == string(want.UID)
}

func byMember[T any, P interface {
	*T
	metav1.Object
}](items []T, is func(P) bool) map[string]P {
	all := map[string]P{}
	for i := range items {
		p := P(&items[i])
		if name := p.GetLabels()[etcd.LabelMember]; name != "" && is(p) {
			all[name] = p
		}
	}
	return all
}
