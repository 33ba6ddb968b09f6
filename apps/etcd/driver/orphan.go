package driver

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
)

// orphans are the running objects of an earlier cluster of the same name. Services of this
// cluster would select its pods, and StatefulSets would adopt them. The cache may still show
// their owner. Once this cluster has members, a StatefulSet or pod without an owner is its own.
func orphans(want *etcdv1.EtcdCluster, p parts, sets []appsv1.StatefulSet, pods []corev1.Pod) (all []string, earlier bool) {
	if want.Status.ClusterID != "" || len(p.sets) > 0 {
		return nil, false
	}
	for i := range sets {
		owner := metav1.GetControllerOf(&sets[i])
		earlier = earlier || owner != nil && owner.Kind == kind.Kind && owner.UID != want.UID
		if alive(&sets[i]) && owner == nil {
			all = append(all, "StatefulSet "+sets[i].Name)
		}
	}
	for i := range pods {
		switch {
		case !alive(&pods[i]), metav1.IsControlledBy(&pods[i], want): // its trial pod
		case orphaned(&pods[i]):
			all = append(all, "Pod "+pods[i].Name)
		default:
			earlier = true // this cluster has no StatefulSet that could own it
		}
	}
	slices.Sort(all)
	return all, earlier
}

// notOrphaned returns an error if a StatefulSet or pod of another cluster has the member's name,
// and orphans did not see it. Adopting it would restart it without its data.
func (d *Driver) notOrphaned(ctx context.Context, want *etcdv1.EtcdCluster, member string) error {
	set := &appsv1.StatefulSet{}
	found, err := d.find(ctx, want, member, set)
	if err != nil {
		return err
	}
	if claim := dataClaim(set.Spec.Template.Spec.Volumes); found && metav1.GetControllerOf(set) == nil && alive(set) && other(want, member, claim) {
		return &apply.ForeignError{Kind: "StatefulSet", Name: member, Owner: "the volume " + claim + " of another cluster"}
	}
	pod := &corev1.Pod{}
	found, err = d.find(ctx, want, podName(member), pod)
	if err != nil {
		return err
	}
	if claim := dataClaim(pod.Spec.Volumes); found && orphaned(pod) && alive(pod) && other(want, member, claim) {
		return &apply.ForeignError{Kind: "Pod", Name: pod.Name, Owner: "the volume " + claim + " of another cluster"}
	}
	return nil
}

func other(want *etcdv1.EtcdCluster, member, claim string) bool {
	return claim != "" && claim != etcd.ClaimName(want, member)
}

// dataClaim is the claim with etcd's data; empty if the data is in the pod's own volume.
func dataClaim(volumes []corev1.Volume) string {
	for _, v := range volumes {
		if v.Name == etcd.DataVolume && v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}
