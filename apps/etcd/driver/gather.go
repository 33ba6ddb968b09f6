package driver

import (
	"context"
	"fmt"
	"iter"
	"maps"
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

// parts are the members' objects in Kubernetes, by the names of the members.
type parts struct {
	sets             map[string]*appsv1.StatefulSet
	claims           map[string]*corev1.PersistentVolumeClaim
	pods             map[string]*corev1.Pod
	bootstrapConfigs map[string]*corev1.ConfigMap
	// stuckSets are StatefulSets whose deletion does not finish: their pods continue to run.
	stuckSets map[string]*appsv1.StatefulSet
	// foreignClaims have the names of new members' claims, and Governor did not create them.
	foreignClaims map[string]*corev1.PersistentVolumeClaim
	// foreignPods have the names of members' pods, and other controllers or users created them.
	foreignPods map[string]*corev1.Pod
	// trial is the trial pod.
	trial *corev1.Pod
	// orphans are the running objects of an earlier cluster of the name.
	orphans []string
	// earlier reports whether that cluster still owns StatefulSets.
	earlier bool
	// oldVolumes are the claims that clusters of the name have left.
	oldVolumes []string
}

// gather reads the cache. A StatefulSet that is being deleted counts as deleted. Its pod still
// runs, and a claim still has its data while a pod uses it.
func (d *Driver) gather(ctx context.Context, want *etcdv1.EtcdCluster) (parts, error) {
	var sets appsv1.StatefulSetList
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	var bootstrapConfigs corev1.ConfigMapList
	for _, list := range []client.ObjectList{&sets, &claims, &pods, &bootstrapConfigs} {
		err := d.client.List(ctx, list, client.InNamespace(want.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingLabels{lifecycle.LabelApp: etcd.Name, lifecycle.LabelInstance: want.Name})
		if err != nil {
			return parts{}, fmt.Errorf("cannot list %T: %w", list, err)
		}
	}
	p := parts{
		foreignPods: map[string]*corev1.Pod{},
		sets:        byMember(sets.Items, "", func(s *appsv1.StatefulSet) bool { return alive(s) && metav1.IsControlledBy(s, want) }),
		// The name of a claim contains a hash of the cluster's UID.
		claims:           byMember(claims.Items, etcd.ClaimName(want, ""), func(*corev1.PersistentVolumeClaim) bool { return true }),
		bootstrapConfigs: byMember(bootstrapConfigs.Items, etcd.BootstrapConfigName(""), func(c *corev1.ConfigMap) bool { return metav1.IsControlledBy(c, want) }),
		stuckSets:        findStuckSets(want, sets.Items, d.now()),
	}
	if err := d.findSets(ctx, want, p, candidates(want, p, pods.Items)); err != nil {
		return parts{}, err
	}
	p.oldVolumes = oldVolumes(want, claims.Items, pods.Items)
	p.orphans, p.earlier = orphans(want, p, sets.Items, pods.Items)
	p.trial = findTrial(want, pods.Items)
	p.pods = byMember(pods.Items, podName(""), owned(want, sets.Items, p.sets))
	if err := d.findPods(ctx, want, p); err != nil {
		return parts{}, err
	}
	return p, d.findClaims(ctx, want, p, candidates(want, p, nil))
}

// oldVolumes are the names of the claims of other clusters of the name that nothing uses or is about to delete: such a cluster was
// deleted and created again, or restored from a backup of Kubernetes' objects.
func oldVolumes(want *etcdv1.EtcdCluster, claims []corev1.PersistentVolumeClaim, pods []corev1.Pod) []string {
	var names []string
	mounted := map[string]bool{}
	for i := range pods {
		for _, v := range pods[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				mounted[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	for i := range claims {
		c := &claims[i]
		own := strings.HasSuffix(c.Name, etcd.ClaimName(want, "")) // whatever a user writes into its labels
		if of := c.Labels[etcd.LabelCluster]; of != "" && of != string(want.UID) && !own && alive(c) && len(c.OwnerReferences) == 0 && !mounted[c.Name] {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// initialClusters are the --initial-cluster of all bootstrap ConfigMaps.
func (p parts) initialClusters() map[string]string {
	all := map[string]string{}
	for name, c := range p.bootstrapConfigs {
		all[name] = etcd.InitialClusterOf(c)
	}
	return all
}

// candidates are the names of members that may exist: those seen at any time, even if the cache
// has none of their objects.
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

// owned selects pods of a StatefulSet of exactly this cluster, including one that is being
// deleted and pods that it orphaned: a running member must be seen. Before the cluster has an
// ID, which identifies its members' answers, a pod without a controller may belong to an earlier
// cluster of the same name.
func owned(want *etcdv1.EtcdCluster, listed []appsv1.StatefulSet, found map[string]*appsv1.StatefulSet) func(*corev1.Pod) bool {
	mine := map[types.UID]bool{}
	for i := range listed {
		mine[listed[i].UID] = metav1.IsControlledBy(&listed[i], want)
	}
	for _, set := range found {
		mine[set.UID] = true
	}
	return func(pod *corev1.Pod) bool {
		if orphaned(pod) {
			return want.Status.ClusterID != "" && !foreign(want, pod)
		}
		return mine[metav1.GetControllerOf(pod).UID]
	}
}

func orphaned(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil }

func podName(member string) string { return member + "-0" }

// firstPodWithin is how long a StatefulSet may take to create its first pod.
const firstPodWithin = 10 * time.Second

// findSets adds StatefulSets that the cache lacks because they have lost the labels by which it
// selects. Otherwise their members would seem to have no StatefulSet.
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

// findPods adds pods that have lost their labels, and pods that are not the cluster's. The cache lacks them,
// and the StatefulSets cannot create others of the same names. A pod of an earlier StatefulSet of the
// member is neither: it is about to be deleted, or was orphaned.
func (d *Driver) findPods(ctx context.Context, want *etcdv1.EtcdCluster, p parts) error {
	for member, set := range p.sets {
		if p.pods[member] != nil || d.now().Sub(set.CreationTimestamp.Time) < firstPodWithin {
			continue
		}
		pod := &corev1.Pod{}
		found, err := d.find(ctx, want, podName(member), pod)
		if err != nil {
			return err
		}
		switch owner := metav1.GetControllerOf(pod); {
		case !found:
		case createdBy(want, set, pod):
			p.pods[member] = pod
		case owner == nil || owner.Kind != "StatefulSet" || owner.Name != member:
			p.foreignPods[member] = pod
		}
	}
	return nil
}

// findClaims adds claims that the cache lacks because they have lost the labels by which it
// selects. Otherwise their members would seem to have lost their data.
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

// findListed adds the objects that the cache lacks for members in etcd's list.
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

// createdBy reports whether the StatefulSet created the pod. A pod without an owner is
// identified by its volume, if it has its own.
func createdBy(want *etcdv1.EtcdCluster, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner == nil && !foreign(want, pod) || owner != nil && owner.UID == set.UID
}

// foreign reports that the pod does not run on the volume of the member whose name it has. It
// may be a copy, or belong to a cluster of the same name that was deleted with --cascade=orphan.
func foreign(want *etcdv1.EtcdCluster, pod *corev1.Pod) bool {
	member, _ := strings.CutSuffix(pod.Name, podName(""))
	if etcd.Volatile(want) {
		label, ok := pod.Labels[etcd.LabelMember]
		return ok && label != member
	}
	return dataClaim(pod.Spec.Volumes) != etcd.ClaimName(want, member)
}

// lacksTemplateLabels reports that the pod lacks a label by which its StatefulSet, the Services
// and the PodDisruptionBudget select it.
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

// byMember finds the objects of members by their names: the member's name and the suffix. Labels
// are no proof: they can be copied to other objects, and edited.
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
