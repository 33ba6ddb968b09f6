package etcd

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Annotations on a StatefulSet and on its pods record the inputs of the pod template.
const (
	// AnnotationRevision is a digest of the fields of the spec that the template was made from.
	AnnotationRevision = "etcd.database.coreos.com/revision"
	// AnnotationVersion is the release of etcd.
	AnnotationVersion = "etcd.database.coreos.com/version"
	// AnnotationSnapshots is how often the member writes snapshots: see [Snapshots].
	AnnotationSnapshots = "etcd.database.coreos.com/snapshots"
)

// defaultGracePeriod is the time in seconds in which etcd transfers the leadership and closes
// its files.
const defaultGracePeriod = 30

// StatefulSet renders the member at the version of the step that starts or restarts it. The
// caller sets namespace and owner.
func StatefulSet(want *etcdv1.EtcdCluster, seen World, s lifecycle.Step) (*appsv1.StatefulSet, error) {
	v, err := parse(s.Args[ArgVersion])
	if err != nil {
		return nil, err
	}
	labels, notes := memberLabels(want, s.Target), annotations(s, v)
	exposed := map[string]string{LabelExposed: s.Args[ArgExposed]}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: s.Target, Labels: merged(labels, exposed), Annotations: notes},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), ServiceName: want.Name,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: appsv1.ParallelPodManagement,
			// Only a step deletes a pod; a change of the template alone never does.
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: new(int32(2)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: merged(podLabels(want, s.Target), exposed), Annotations: merged(want.Spec.Pod.Annotations, notes),
				},
				Spec: podSpec(want, seen, s, v),
			},
		},
	}, nil
}

func annotations(s lifecycle.Step, v version) map[string]string {
	notes := map[string]string{AnnotationRevision: s.Args[ArgRevision], AnnotationVersion: v.String()}
	if often := s.Args[ArgSnapshots]; often != "" {
		notes[AnnotationSnapshots] = often
	}
	return notes
}

// podLabels include the labels of the legacy operator, so that the users' affinity rules still
// match.
func podLabels(want *etcdv1.EtcdCluster, member string) map[string]string {
	legacy := map[string]string{"app": "etcd", "etcd_cluster": want.Name, "etcd_node": member}
	return merged(merged(legacy, want.Spec.Pod.Labels), memberLabels(want, member))
}

func podSpec(want *etcdv1.EtcdCluster, seen World, s lifecycle.Step, v version) corev1.PodSpec {
	pod, member := want.Spec.Pod, s.Target
	main := container(want, seen, member, v)
	main.Args = append(main.Args, snapshotFlags(want, Snapshots(s.Args[ArgSnapshots]))...)
	return corev1.PodSpec{
		Containers:                    []corev1.Container{main},
		Volumes:                       volumes(want, member),
		HostAliases:                   []corev1.HostAlias{ownHostAlias(want, member)},
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: orDefault(pod.TerminationGracePeriodSeconds, defaultGracePeriod),
		SecurityContext:               podSecurity(want),
		Affinity:                      affinity(want),
		TopologySpreadConstraints:     spreading(want),
		NodeSelector:                  pod.NodeSelector,
		Tolerations:                   pod.Tolerations,
		PriorityClassName:             pod.PriorityClassName,
		ServiceAccountName:            pod.ServiceAccountName,
		ImagePullSecrets:              pod.ImagePullSecrets,
	}
}

// ownHostAlias resolves the member's own name without DNS. A joining member compares the
// addresses of all members, including its own, and waits a second for each unknown name
// (pkg/netutil, resolveURL).
func ownHostAlias(want *etcdv1.EtcdCluster, member string) corev1.HostAlias {
	return corev1.HostAlias{IP: "127.0.0.1", Hostnames: []string{podHost(want, member)}}
}

func orDefault(p *int64, otherwise int64) *int64 {
	if p != nil {
		return p
	}
	return &otherwise
}

func volumes(want *etcdv1.EtcdCluster, member string) []corev1.Volume {
	all := []corev1.Volume{{Name: DataVolume, VolumeSource: data(want, member)}}
	secret := func(name, of string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: of, DefaultMode: new(int32(0o440))},
		}}
	}
	if peersEncrypt(want) {
		all = append(all, secret("peer-tls", PeerSecret(want, member)))
	}
	if ClientsEncrypt(want) {
		all = append(all, secret("server-tls", ServerSecret(want, member)))
	}
	return all
}

func data(want *etcdv1.EtcdCluster, member string) corev1.VolumeSource {
	if !Volatile(want) {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: ClaimName(want, member),
		}}
	}
	dir := &corev1.EmptyDirVolumeSource{SizeLimit: want.Spec.Storage.Size}
	if want.Spec.Storage.Medium == etcdv1.MediumMemory {
		dir.Medium = corev1.StorageMediumMemory
	}
	return corev1.VolumeSource{EmptyDir: dir}
}

// DataVolume is the name of the volume with etcd's data in a member's pod.
const DataVolume = "data"

// ClaimName contains a hash of the cluster's UID: a recreated cluster of the same name looks for
// other volumes, and the owner of a claim does not depend on a label.
func ClaimName(want *etcdv1.EtcdCluster, member string) string {
	return member + "-" + uidHash(want)
}

// ClaimLabels are the labels of the member's claim. They only help to find it.
func ClaimLabels(want *etcdv1.EtcdCluster, member string) map[string]string {
	labels := memberLabels(want, member)
	labels[LabelCluster] = string(want.UID)
	return labels
}

// Claim is the PersistentVolumeClaim of the member that the step starts or restarts, or nil if
// the data is in the pod. The caller sets the owner if the cluster does not retain the claim.
func Claim(want *etcdv1.EtcdCluster, s lifecycle.Step) *corev1.PersistentVolumeClaim {
	if Volatile(want) {
		return nil
	}
	size := resource.MustParse("8Gi")
	if want.Spec.Storage.Size != nil {
		size = want.Spec.Storage.Size.DeepCopy()
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: ClaimName(want, s.Target), Labels: ClaimLabels(want, s.Target),
			Annotations: map[string]string{
				AnnotationVersion: s.Args[ArgVersion],
				// A retained claim has the instance label and no owner, which Argo CD takes for garbage of the application
				// of that name (https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/#no-prune-resources).
				"argocd.argoproj.io/compare-options": "IgnoreExtraneous",
				"argocd.argoproj.io/sync-options":    "Prune=false,Delete=false",
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: want.Spec.Storage.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}
}

// podSecurity satisfies the restricted Pod Security Standard.
func podSecurity(want *etcdv1.EtcdCluster) *corev1.PodSecurityContext {
	if s := want.Spec.Pod.SecurityContext; s != nil {
		return s
	}
	s := lifecycle.RestrictedPod(user)
	s.FSGroup, s.FSGroupChangePolicy = new(int64(user)), new(corev1.FSGroupChangeOnRootMismatch)
	return s
}

// affinity prefers a separate node for each member, and excludes none.
func affinity(want *etcdv1.EtcdCluster) *corev1.Affinity {
	if a := want.Spec.Pod.Affinity; a != nil {
		return a
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: selector(want)},
			},
		}},
	}}
}

func spreading(want *etcdv1.EtcdCluster) []corev1.TopologySpreadConstraint {
	if s := want.Spec.Pod.TopologySpreadConstraints; len(s) > 0 {
		return s
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: selector(want)},
	}}
}
