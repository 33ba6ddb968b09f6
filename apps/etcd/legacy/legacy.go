// Package legacy converts between the legacy API v1beta2 and v1 without loss. The status of one
// version keeps what the other cannot express. The API server keeps the status over every write
// of the object and drops it from a new object. A client can therefore neither lose nor forge it
// (docs/adr/0023-the-status-keeps-what-a-version-cannot-express.md).
package legacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
)

// defaultVersion is the release that the legacy operator ran if none was declared.
const defaultVersion = "3.2.13"

// defaultSize is the API server's default for a v1 object without a size.
const defaultSize = "8Gi"

// same compares values as the API server stores them.
var same = equality.Semantic.DeepEqual

// kept is an object without its metadata.
type kept[S, T any] struct {
	Spec   S `json:"spec"`
	Status T `json:"status"`
}

type (
	keptV1     = kept[etcdv1.EtcdClusterSpec, etcdv1.EtcdClusterStatus]
	keptLegacy = kept[v1beta2.ClusterSpec, v1beta2.ClusterStatus]
)

// ToV1 converts a legacy object. A legacy object with status.v1 changes only the fields of v1 in
// which it differs from its former v1beta2 form.
func ToV1(in *v1beta2.EtcdCluster) (*etcdv1.EtcdCluster, error) {
	out := &etcdv1.EtcdCluster{ObjectMeta: *in.ObjectMeta.DeepCopy()}
	out.TypeMeta = typeMeta(etcdv1.GroupVersion.String())
	said := keptLegacy{*in.Spec.DeepCopy(), *in.Status.DeepCopy()}
	said.Status.V1 = ""
	out.Spec = fromLegacy(in.Name, said.Spec)
	if in.Status.V1 != "" {
		var before keptV1
		if err := json.Unmarshal([]byte(in.Status.V1), &before); err != nil {
			return nil, fmt.Errorf("status.v1 is not readable: %w", err)
		}
		out.Spec, out.Status = *before.Spec.DeepCopy(), before.Status
		shown := show(in.Name, &before)
		omit(&said.Spec, shown)
		overlayV1(&out.Spec, fromLegacy(in.Name, shown), fromLegacy(in.Name, said.Spec))
		if err := refuse(before.Spec, out.Spec); err != nil {
			return nil, err
		}
	}
	if observed(out.Status) {
		said.Status = v1beta2.ClusterStatus{} // the v1 status is more precise
	}
	return out, put(&out.Status.V1Beta2, said, same(said, keptLegacy{Spec: toLegacy(out.Spec)}))
}

// FromV1 converts to the legacy API.
func FromV1(in *etcdv1.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	out := &v1beta2.EtcdCluster{ObjectMeta: *in.ObjectMeta.DeepCopy()}
	out.TypeMeta = typeMeta(v1beta2.GroupVersion.String())
	now := keptV1{in.Spec, in.Status}
	out.Spec, out.Status = show(in.Name, &now), statusToLegacy(in)
	if said := legacyOf(in.Status); said != nil && !observed(in.Status) {
		out.Status = said.Status
	}
	return out, put(&out.Status.V1, now, false)
}

func typeMeta(apiVersion string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: "EtcdCluster"}
}

// put writes the value as JSON, or nothing if it is not needed.
func put(field *string, value any, needless bool) error {
	*field = ""
	if needless {
		return nil
	}
	raw, err := json.Marshal(value)
	*field = string(raw)
	return err
}

// legacyOf is the last written v1beta2 object, or nil. An unreadable one is no error: it would
// break every list of objects, and v1 has all relevant fields.
func legacyOf(status etcdv1.EtcdClusterStatus) *keptLegacy {
	said := &keptLegacy{}
	if status.V1Beta2 == "" || json.Unmarshal([]byte(status.V1Beta2), said) != nil {
		return nil
	}
	return said
}

// observed reports whether Governor has written a status.
func observed(status etcdv1.EtcdClusterStatus) bool {
	status.V1Beta2 = ""
	return !same(status, etcdv1.EtcdClusterStatus{})
}

// show is the spec in v1beta2: as last written there, with later changes in v1.
func show(cluster string, now *keptV1) v1beta2.ClusterSpec {
	shown := toLegacy(*now.Spec.DeepCopy())
	said := legacyOf(now.Status)
	if said == nil {
		return shown
	}
	overlayLegacy(&said.Spec, toLegacy(fromLegacy(cluster, said.Spec)), shown)
	return said.Spec
}

// omit keeps the present values of fields that have a default in v1beta2, if the object lacks
// them. A manifest without them must not move data to the default release or volume size of new
// clusters.
func omit(said *v1beta2.ClusterSpec, shown v1beta2.ClusterSpec) {
	if said.Version == "" {
		said.Version = shown.Version
	}
	size, ok := storageOf(shown)
	if _, given := storageOf(*said); ok && !given && said.Pod != nil && said.Pod.PersistentVolumeClaimSpec != nil {
		claim := said.Pod.PersistentVolumeClaimSpec
		if claim.Resources.Requests == nil {
			claim.Resources.Requests = corev1.ResourceList{}
		}
		claim.Resources.Requests[corev1.ResourceStorage] = size
	}
}

// storageOf is the volume size that the claim requests.
func storageOf(s v1beta2.ClusterSpec) (resource.Quantity, bool) {
	if s.Pod == nil || s.Pod.PersistentVolumeClaimSpec == nil {
		return resource.Quantity{}, false
	}
	size, ok := s.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	return size, ok
}

// refuse rejects changes that v1 does not allow and the schema of v1beta2 cannot detect. The API
// server validates an object only in the version of the request.
func refuse(before, now etcdv1.EtcdClusterSpec) error {
	switch {
	case now.TLS.Mode != before.TLS.Mode:
		return fmt.Errorf("spec.TLS: in v1 spec.tls.mode is %s and cannot be changed to %s: create another cluster", before.TLS.Mode, now.TLS.Mode)
	case now.Storage.Medium != before.Storage.Medium:
		return fmt.Errorf("spec.pod.persistentVolumeClaimSpec: in v1 spec.storage.medium is %s and cannot be changed to %s: create another cluster",
			before.Storage.Medium, now.Storage.Medium)
	case now.Image != "" && now.Repository != "":
		return errors.New("spec.repository cannot be set: the object has spec.image in v1, and they exclude each other")
	}
	return nil
}

// fromLegacy converts a legacy spec to v1.
func fromLegacy(cluster string, in v1beta2.ClusterSpec) etcdv1.EtcdClusterSpec {
	out := etcdv1.EtcdClusterSpec{
		Size: in.Size, Repository: in.Repository, Paused: in.Paused,
		Version: strings.TrimPrefix(in.Version, "v"),
		Storage: etcdv1.StorageSpec{Medium: etcdv1.MediumEphemeral, Size: new(resource.MustParse(defaultSize))},
		TLS:     tlsFromLegacy(in.TLS),

		Rebalance: etcdv1.RebalanceManual, // the API server's default for a v1 object
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
		out.Storage.Medium, out.Storage.StorageClassName = etcdv1.MediumPersistent, claim.StorageClassName
		if size, ok := claim.Resources.Requests[corev1.ResourceStorage]; ok {
			out.Storage.Size = &size
		}
	}
}

// apart is the affinity that the legacy antiAffinity required.
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
		return etcdv1.TLSSpec{Mode: etcdv1.TLSModeDisabled}
	}
	return etcdv1.TLSSpec{Mode: etcdv1.TLSModeSecrets, Secrets: &s}
}

// toLegacy converts as much of a v1 spec as the legacy API can express.
func toLegacy(in etcdv1.EtcdClusterSpec) v1beta2.ClusterSpec {
	pod := &v1beta2.PodPolicy{
		Labels: in.Pod.Labels, Annotations: in.Pod.Annotations, NodeSelector: in.Pod.NodeSelector,
		Affinity: in.Pod.Affinity, Tolerations: in.Pod.Tolerations, Resources: in.Pod.Resources,
		EtcdEnv: in.Pod.Env, SecurityContext: in.Pod.SecurityContext, ClusterDomain: in.ClusterDomain,
	}
	if in.Storage.Medium == etcdv1.MediumPersistent || in.Storage.Medium == "" {
		pod.PersistentVolumeClaimSpec = claim(in.Storage)
	}
	out := v1beta2.ClusterSpec{
		Size: in.Size, Repository: in.Repository, Version: in.Version, Paused: in.Paused, TLS: tlsToLegacy(in.TLS),
	}
	if !same(*pod, v1beta2.PodPolicy{}) {
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
