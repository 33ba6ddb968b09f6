package driver

import (
	"context"
	"fmt"
	"iter"
	"maps"
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
	// held are StatefulSets that are being deleted and do not go: their pods run on.
	held map[string]*appsv1.StatefulSet
	// orphans are what an earlier cluster of the name left running.
	orphans []string
	// earlier says that it still owns StatefulSets.
	earlier bool
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
		sets: byMember(sets.Items, "", func(s *appsv1.StatefulSet) bool { return alive(s) && metav1.IsControlledBy(s, want) }),
		// The name of a claim has the cluster's UID in it.
		claims: byMember(claims.Items, etcd.ClaimName(want, ""), func(*corev1.PersistentVolumeClaim) bool { return true }),
		doors:  byMember(doors.Items, etcd.BootstrapConfigName(""), func(c *corev1.ConfigMap) bool { return metav1.IsControlledBy(c, want) }),
		held:   heldSets(want, sets.Items, d.now()),
	}
	if err := d.findSets(ctx, want, p, candidates(want, p, pods.Items)); err != nil {
		return parts{}, err
	}
	p.orphans, p.earlier = orphans(want, p, sets.Items, pods.Items)
	p.pods = byMember(pods.Items, podName(""), owned(want, sets.Items, p.sets))
	if err := d.findPods(ctx, want, p); err != nil {
		return parts{}, err
	}
	return p, d.findClaims(ctx, want, p, candidates(want, p, nil))
}

// candidates are the names under which members may exist: those that were seen at any
// time, also if the cache has none of their objects.
func candidates(want *etcdv1.EtcdCluster, p parts, pods []corev1.Pod) map[string]bool {
	all := map[string]bool{}
	for _, m := range want.Status.Members {
		all[m.Name] = true
	}
	for i := range pods {
		if member, ok := strings.CutSuffix(pods[i].Name, podName("")); ok {
			all[member] = true
		}
	}
	for _, names := range []iter.Seq[string]{maps.Keys(p.sets), maps.Keys(p.claims), maps.Keys(p.pods)} {
		for name := range names {
			all[name] = true
		}
	}
	return all
}

// owned pods are controlled by a StatefulSet of this very cluster, also by one that is
// being deleted, or were left behind by one: a member that runs must be seen. Before the
// cluster has an ID, by which a member's answer proves that it is one of its own, a pod
// without a controller may be of an earlier cluster of the same name.
func owned(want *etcdv1.EtcdCluster, listed []appsv1.StatefulSet, found map[string]*appsv1.StatefulSet) func(*corev1.Pod) bool {
	own := map[types.UID]bool{}
	for i := range listed {
		own[listed[i].UID] = metav1.IsControlledBy(&listed[i], want)
	}
	for _, set := range found {
		own[set.UID] = true
	}
	return func(pod *corev1.Pod) bool {
		if orphaned(pod) {
			return want.Status.ClusterID != "" && !foreign(want, pod)
		}
		return own[metav1.GetControllerOf(pod).UID]
	}
}

func orphaned(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil }

func podName(member string) string { return member + "-0" }

// settling is how long a StatefulSet may take to make its first pod.
const settling = 10 * time.Second

// findSets adds StatefulSets that the cache does not have, because they have lost the
// labels by which it selects. A member must not be taken for one without a StatefulSet.
func (d *Driver) findSets(ctx context.Context, want *etcdv1.EtcdCluster, p parts, members map[string]bool) error {
	for member := range members {
		if p.sets[member] != nil {
			continue
		}
		set := &appsv1.StatefulSet{}
		found, err := d.find(ctx, want, member, set)
		if err != nil {
			return err
		}
		if found && alive(set) && metav1.IsControlledBy(set, want) {
			p.sets[member] = set
		}
	}
	return nil
}

// findPods adds pods that have lost their labels: the cache does not have them, and their
// StatefulSets cannot make others of the same names.
func (d *Driver) findPods(ctx context.Context, want *etcdv1.EtcdCluster, p parts) error {
	for member, set := range p.sets {
		if p.pods[member] != nil || d.now().Sub(set.CreationTimestamp.Time) < settling {
			continue
		}
		pod := &corev1.Pod{}
		found, err := d.find(ctx, want, podName(member), pod)
		if err != nil {
			return err
		}
		if found && made(want, set, pod) {
			p.pods[member] = pod
		}
	}
	return nil
}

// findClaims adds claims that the cache does not have, because they have lost the labels
// by which it selects: a member whose claim is only out of sight has its data.
func (d *Driver) findClaims(ctx context.Context, want *etcdv1.EtcdCluster, p parts, members map[string]bool) error {
	for member := range members {
		if p.claims[member] != nil || etcd.Volatile(want) {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		found, err := d.find(ctx, want, etcd.ClaimName(want, member), claim)
		if err != nil {
			return err
		}
		if found {
			p.claims[member] = claim
		}
	}
	return nil
}

// findListed adds what the cache does not have of members that etcd lists.
func (d *Driver) findListed(ctx context.Context, want *etcdv1.EtcdCluster, p parts, r memberList) error {
	if err := d.findSets(ctx, want, p, r.ours()); err != nil {
		return err
	}
	return d.findClaims(ctx, want, p, r.ours())
}

// find reads an object of the cluster's namespace from the API server.
func (d *Driver) find(ctx context.Context, want *etcdv1.EtcdCluster, name string, obj client.Object) (bool, error) {
	err := d.live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot read %T %q: %w", obj, name, err)
	}
	return err == nil, nil
}

// made says that the pod was made by the StatefulSet. Without an owner it is known by its
// volume, if it has one of its own.
func made(want *etcdv1.EtcdCluster, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner == nil && !foreign(want, pod) || owner != nil && owner.UID == set.UID
}

// foreign says that the pod does not run on the volume of the member whose name it has. It
// may be a copy, or of a cluster of the same name that was deleted with --cascade=orphan.
func foreign(want *etcdv1.EtcdCluster, pod *corev1.Pod) bool {
	member, _ := strings.CutSuffix(pod.Name, podName(""))
	if etcd.Volatile(want) {
		label, ok := pod.Labels[etcd.LabelMember]
		return ok && label != member
	}
	return dataClaim(pod.Spec.Volumes) != etcd.ClaimName(want, member)
}

// lacksTemplateLabels says that the pod lacks a label by which its StatefulSet, the
// Services and the PodDisruptionBudget select it.
func lacksTemplateLabels(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return set != nil && lacksLabels(set.Spec.Selector.MatchLabels, pod)
}

func lacksLabels(labels map[string]string, obj metav1.Object) bool {
	has := obj.GetLabels()
	for key, value := range labels {
		if has[key] != value {
			return true
		}
	}
	return false
}

func alive(obj metav1.Object) bool { return obj.GetDeletionTimestamp() == nil }

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
