package legacy

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
)

// change writes the new value if it is another than the old one was. A field that
// was not changed keeps what the other version could not express.
func change[V any](field *V, old, now V) {
	if !same(old, now) {
		*field = now
	}
}

// overlayV1 writes what was changed in the legacy object.
func overlayV1(s *etcdv1.EtcdClusterSpec, old, now etcdv1.EtcdClusterSpec) {
	change(&s.Size, old.Size, now.Size)
	change(&s.Repository, old.Repository, now.Repository)
	change(&s.Version, old.Version, now.Version)
	change(&s.Paused, old.Paused, now.Paused)
	change(&s.Storage.Medium, old.Storage.Medium, now.Storage.Medium)
	change(&s.Storage.Size, old.Storage.Size, now.Storage.Size)
	change(&s.Storage.StorageClassName, old.Storage.StorageClassName, now.Storage.StorageClassName)
	change(&s.TLS.Mode, old.TLS.Mode, now.TLS.Mode)
	overlaySecrets(&s.TLS, old.TLS.Secrets, now.TLS.Secrets)
	change(&s.ClusterDomain, old.ClusterDomain, now.ClusterDomain)
	change(&s.Pod.Labels, old.Pod.Labels, now.Pod.Labels)
	change(&s.Pod.Annotations, old.Pod.Annotations, now.Pod.Annotations)
	change(&s.Pod.NodeSelector, old.Pod.NodeSelector, now.Pod.NodeSelector)
	change(&s.Pod.Affinity, old.Pod.Affinity, now.Pod.Affinity)
	change(&s.Pod.Tolerations, old.Pod.Tolerations, now.Pod.Tolerations)
	change(&s.Pod.Resources, old.Pod.Resources, now.Pod.Resources)
	change(&s.Pod.Env, old.Pod.Env, now.Pod.Env)
	change(&s.Pod.SecurityContext, old.Pod.SecurityContext, now.Pod.SecurityContext)
}

// overlaySecrets writes the names of Secrets that were changed.
func overlaySecrets(s *etcdv1.TLSSpec, old, now *etcdv1.TLSSecrets) {
	if s.Secrets == nil || old == nil || now == nil {
		change(&s.Secrets, old, now)
		return
	}
	change(&s.Secrets.Peer, old.Peer, now.Peer)
	change(&s.Secrets.Server, old.Server, now.Server)
	change(&s.Secrets.Client, old.Client, now.Client)
}

// overlayLegacy writes what was changed in v1.
func overlayLegacy(s *v1beta2.ClusterSpec, old, now v1beta2.ClusterSpec) {
	change(&s.Size, old.Size, now.Size)
	change(&s.Repository, old.Repository, now.Repository)
	change(&s.Version, old.Version, now.Version)
	change(&s.Paused, old.Paused, now.Paused)
	change(&s.TLS, old.TLS, now.TLS)
	if same(old.Pod, now.Pod) {
		return
	}
	pod, was, is := &v1beta2.PodPolicy{}, pod(old), pod(now)
	if s.Pod != nil {
		pod = s.Pod.DeepCopy()
	}
	change(&pod.Labels, was.Labels, is.Labels)
	change(&pod.Annotations, was.Annotations, is.Annotations)
	change(&pod.NodeSelector, was.NodeSelector, is.NodeSelector)
	change(&pod.Tolerations, was.Tolerations, is.Tolerations)
	change(&pod.Resources, was.Resources, is.Resources)
	change(&pod.EtcdEnv, was.EtcdEnv, is.EtcdEnv)
	change(&pod.SecurityContext, was.SecurityContext, is.SecurityContext)
	change(&pod.ClusterDomain, was.ClusterDomain, is.ClusterDomain)
	change(&pod.PersistentVolumeClaimSpec, was.PersistentVolumeClaimSpec, is.PersistentVolumeClaimSpec)
	if !same(was.Affinity, is.Affinity) {
		pod.Affinity, pod.AntiAffinity = is.Affinity, false
	}
	s.Pod = pod
}

func pod(s v1beta2.ClusterSpec) v1beta2.PodPolicy {
	if s.Pod == nil {
		return v1beta2.PodPolicy{}
	}
	return *s.Pod
}

// statusToLegacy reports the observed state in the terms of the legacy API.
func statusToLegacy(in *etcdv1.EtcdCluster) v1beta2.ClusterStatus {
	s := in.Status
	if !observed(s) {
		return v1beta2.ClusterStatus{}
	}
	out := v1beta2.ClusterStatus{
		Phase: phases[s.Phase], ControlPaused: in.Spec.Paused, Size: int(s.Replicas), ServiceName: s.ServiceName,
		ClientPort: 2379, CurrentVersion: s.Version.Current,
	}
	if s.Version.Target != s.Version.Current {
		out.TargetVersion = s.Version.Target
	}
	for _, m := range s.Members {
		if m.Health == "Healthy" && m.Role != "Learner" {
			out.Members.Ready = append(out.Members.Ready, m.Name)
		} else {
			out.Members.Unready = append(out.Members.Unready, m.Name)
		}
	}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, condition(c))
	}
	return out
}

// phases maps to the legacy phases. Failed is terminal in the legacy API, so no phase maps to it.
var phases = map[etcdv1.Phase]string{
	etcdv1.PhaseCreating: "Creating", etcdv1.PhaseRunning: running, etcdv1.PhaseDegraded: running,
	etcdv1.PhaseUnavailable: running, etcdv1.PhaseDeleting: running,
}

const running = "Running"

func condition(c metav1.Condition) v1beta2.ClusterCondition {
	at := c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z")
	return v1beta2.ClusterCondition{
		Type: c.Type, Status: corev1.ConditionStatus(c.Status), LastUpdateTime: at, LastTransitionTime: at,
		Reason: c.Reason, Message: c.Message,
	}
}
