// Package legacy converts between the legacy API v1beta2 and v1, without losing
// anything: what one cannot express is kept in an annotation of the other, and a
// field that was not touched comes back as it was written.
package legacy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
)

// Annotations that carry what the other version cannot express.
const (
	// AnnotationV1Beta2 on a v1 object is the spec and status it had in v1beta2.
	AnnotationV1Beta2 = "etcd.database.coreos.com/v1beta2"
	// AnnotationV1 on a v1beta2 object is the spec and status it has in v1.
	AnnotationV1 = "etcd.database.coreos.com/v1"
)

// defaultVersion is what the legacy operator ran where no version was given.
const defaultVersion = "3.2.13"

// defaultSize is what the API server makes of a v1 object without a size.
const defaultSize = "8Gi"

// kept is an object without its metadata.
type kept[S, T any] struct {
	Spec   S `json:"spec"`
	Status T `json:"status"`
}

type (
	keptV1     = kept[etcdv1.EtcdClusterSpec, etcdv1.EtcdClusterStatus]
	keptLegacy = kept[v1beta2.ClusterSpec, v1beta2.ClusterStatus]
)

// ToV1 converts a legacy object. What it was in v1 before, if it was, is changed
// only where the legacy object was changed since.
func ToV1(in *v1beta2.EtcdCluster) (*etcdv1.EtcdCluster, error) {
	out := &etcdv1.EtcdCluster{ObjectMeta: *in.ObjectMeta.DeepCopy()}
	out.TypeMeta = typeMeta(etcdv1.GroupVersion.String())
	before, had, err := take[keptV1](&out.ObjectMeta, AnnotationV1)
	if err != nil {
		return nil, err
	}
	out.Spec = fromLegacy(in.Name, in.Spec)
	if had {
		out.Spec = before.Spec
		if !reflect.DeepEqual(in.Status, v1beta2.ClusterStatus{}) {
			out.Status = before.Status // else the object is made anew from an old one's manifest, and has no past
		}
		overlayV1(&out.Spec, fromLegacy(in.Name, toLegacy(before.Spec)), fromLegacy(in.Name, in.Spec))
		if reflect.DeepEqual(in.Status, statusToLegacy(out)) && reflect.DeepEqual(in.Spec, toLegacy(out.Spec)) {
			return out, nil // the legacy object says nothing that v1 does not
		}
	}
	return out, put(&out.ObjectMeta, AnnotationV1Beta2, keptLegacy{in.Spec, in.Status})
}

// FromV1 converts to the legacy API.
func FromV1(in *etcdv1.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	out := &v1beta2.EtcdCluster{ObjectMeta: *in.ObjectMeta.DeepCopy()}
	out.TypeMeta = typeMeta(v1beta2.GroupVersion.String())
	// What is not readable is no reason to fail, for then a list of all objects
	// would fail: v1 says all that matters.
	before, had, err := take[keptLegacy](&out.ObjectMeta, AnnotationV1Beta2)
	had = had && err == nil
	out.Spec, out.Status = toLegacy(in.Spec), statusToLegacy(in)
	if had {
		out.Spec = before.Spec
		overlayLegacy(&out.Spec, toLegacy(fromLegacy(in.Name, before.Spec)), toLegacy(in.Spec))
		if reflect.DeepEqual(in.Status, etcdv1.EtcdClusterStatus{}) {
			out.Status = before.Status
		}
		if reflect.DeepEqual(in.Spec, fromLegacy(in.Name, before.Spec)) && reflect.DeepEqual(in.Status, etcdv1.EtcdClusterStatus{}) {
			return out, nil // v1 says nothing that the legacy object does not
		}
	}
	return out, put(&out.ObjectMeta, AnnotationV1, keptV1{in.Spec, in.Status})
}

func typeMeta(apiVersion string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: "EtcdCluster"}
}

// take reads the annotation and removes it.
func take[K any](meta *metav1.ObjectMeta, key string) (k K, had bool, err error) {
	raw, had := meta.Annotations[key]
	if !had {
		return k, false, nil
	}
	if delete(meta.Annotations, key); len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
	if err := json.Unmarshal([]byte(raw), &k); err != nil {
		return k, true, fmt.Errorf("metadata.annotations[%s] is not readable; remove it: %w", key, err)
	}
	return k, true, nil
}

func put(meta *metav1.ObjectMeta, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = string(raw)
	return nil
}

// fromLegacy is what a legacy spec means in v1.
func fromLegacy(cluster string, in v1beta2.ClusterSpec) etcdv1.EtcdClusterSpec {
	out := etcdv1.EtcdClusterSpec{
		Size: in.Size, Repository: in.Repository, Paused: in.Paused,
		Version: strings.TrimPrefix(in.Version, "v"),
		Storage: etcdv1.StorageSpec{Medium: etcdv1.Ephemeral, Size: new(resource.MustParse(defaultSize)), Retention: etcdv1.Delete},
		TLS:     tlsFromLegacy(in.TLS),
	}
	if out.Version == "" {
		out.Version = defaultVersion
	}
	if in.Pod != nil {
		podFromLegacy(&out, cluster, in.Pod)
	}
	return out
}

func podFromLegacy(out *etcdv1.EtcdClusterSpec, cluster string, in *v1beta2.PodPolicy) {
	out.Pod = etcdv1.PodSettings{
		Labels: in.Labels, Annotations: in.Annotations, NodeSelector: in.NodeSelector,
		Affinity: in.Affinity, Tolerations: in.Tolerations, Resources: in.Resources,
		Env: in.EtcdEnv, SecurityContext: in.SecurityContext,
	}
	if in.AntiAffinity && in.Affinity == nil {
		out.Pod.Affinity = apart(cluster)
	}
	out.ClusterDomain = strings.Trim(in.ClusterDomain, ".")
	if claim := in.PersistentVolumeClaimSpec; claim != nil {
		out.Storage.Medium, out.Storage.StorageClassName = etcdv1.Persistent, claim.StorageClassName
		if size, ok := claim.Resources.Requests[corev1.ResourceStorage]; ok {
			out.Storage.Size = &size
		}
	}
}

// apart is what the legacy antiAffinity demanded.
func apart(cluster string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"etcd_cluster": cluster}},
		}},
	}}
}

func tlsFromLegacy(in *v1beta2.TLSPolicy) etcdv1.TLSSpec {
	s := etcdv1.TLSSecrets{}
	if in != nil && in.Static != nil {
		s.Client = in.Static.OperatorSecret
		if m := in.Static.Member; m != nil {
			s.Peer, s.Server = m.PeerSecret, m.ServerSecret
		}
	}
	if s == (etcdv1.TLSSecrets{}) {
		return etcdv1.TLSSpec{Mode: etcdv1.Disabled}
	}
	return etcdv1.TLSSpec{Mode: etcdv1.Secrets, Secrets: &s}
}

// toLegacy is as much of a v1 spec as the legacy API can express.
func toLegacy(in etcdv1.EtcdClusterSpec) v1beta2.ClusterSpec {
	pod := &v1beta2.PodPolicy{
		Labels: in.Pod.Labels, Annotations: in.Pod.Annotations, NodeSelector: in.Pod.NodeSelector,
		Affinity: in.Pod.Affinity, Tolerations: in.Pod.Tolerations, Resources: in.Pod.Resources,
		EtcdEnv: in.Pod.Env, SecurityContext: in.Pod.SecurityContext, ClusterDomain: in.ClusterDomain,
	}
	if in.Storage.Medium == etcdv1.Persistent || in.Storage.Medium == "" {
		pod.PersistentVolumeClaimSpec = claim(in.Storage)
	}
	out := v1beta2.ClusterSpec{
		Size: in.Size, Repository: in.Repository, Version: in.Version, Paused: in.Paused, TLS: tlsToLegacy(in.TLS),
	}
	if !reflect.DeepEqual(*pod, v1beta2.PodPolicy{}) {
		out.Pod = pod
	}
	return out
}

func claim(s etcdv1.StorageSpec) *corev1.PersistentVolumeClaimSpec {
	c := &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: s.StorageClassName,
	}
	if s.Size != nil {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *s.Size}
	}
	return c
}

func tlsToLegacy(in etcdv1.TLSSpec) *v1beta2.TLSPolicy {
	if in.Secrets == nil {
		return nil
	}
	s := &v1beta2.StaticTLS{OperatorSecret: in.Secrets.Client}
	if m := (v1beta2.MemberSecret{PeerSecret: in.Secrets.Peer, ServerSecret: in.Secrets.Server}); m != (v1beta2.MemberSecret{}) {
		s.Member = &m
	}
	return &v1beta2.TLSPolicy{Static: s}
}
