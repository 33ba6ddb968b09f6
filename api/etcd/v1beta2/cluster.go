package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster is a cluster of etcd members, in the legacy API. Use v1 for new ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdclusters,shortName=etcdc,categories=governor
// +kubebuilder:deprecatedversion:warning="etcd.database.coreos.com/v1beta2 EtcdCluster is deprecated; use etcd.database.coreos.com/v1, which has every field of it"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="Wanted number of members"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`,description="Running version"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="State of the cluster in one word"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 46 || (has(self.status) && has(self.status.phase))",message="metadata.name must be at most 46 characters long: Kubernetes labels a member's pod with the name, the member's number and a hash"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and contain only lowercase letters, digits and '-': Services are named after it"
// +kubebuilder:validation:XValidation:rule="(has(self.status) && has(self.status.v1)) == (has(oldSelf.status) && has(oldSelf.status.v1)) && (!has(self.status) || !has(self.status.v1) || self.status.v1 == oldSelf.status.v1)",message="status.v1 holds what v1beta2 cannot express and cannot be written in v1beta2: keep it, or write the object in v1"
type EtcdCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the cluster.
	Spec ClusterSpec `json:"spec"`

	// status is the observed state of the cluster.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is the desired state of an EtcdCluster. Its validation includes that of v1, because
// nothing is validated after a conversion.
//
// +kubebuilder:validation:XValidation:rule="self.?pod.persistentVolumeClaimSpec.hasValue() == oldSelf.?pod.persistentVolumeClaimSpec.hasValue()",message="spec.pod.persistentVolumeClaimSpec cannot be added or removed, because data cannot be moved: create another cluster"
// +kubebuilder:validation:XValidation:rule="(has(self.pod) && has(self.pod.ClusterDomain) ? self.pod.ClusterDomain : \"\") == (has(oldSelf.pod) && has(oldSelf.pod.ClusterDomain) ? oldSelf.pod.ClusterDomain : \"\")",message="spec.pod.ClusterDomain cannot be changed: it is part of the names by which members know each other"
// +kubebuilder:validation:XValidation:rule="(self.?TLS.static.member.peerSecret.orValue(\"\") == \"\") == (oldSelf.?TLS.static.member.peerSecret.orValue(\"\") == \"\") && (self.?TLS.static.member.serverSecret.orValue(\"\") == \"\") == (oldSelf.?TLS.static.member.serverSecret.orValue(\"\") == \"\")",message="spec.TLS.static: the Secrets of members can be renamed, but not added or removed: create another cluster"
type ClusterSpec struct {
	// size is the number of members, 1 to 9.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9",message="spec.size must be 1 to 9; to delete the cluster, delete the EtcdCluster"
	Size int32 `json:"size"`

	// repository is the repository of etcd's images. The default is quay.io/coreos/etcd.
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Repository string `json:"repository,omitempty"`

	// version is the release of etcd, such as "3.2.13", which is also the default of a new
	// cluster. An update without it keeps the release.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v?3[.][0-9]{1,2}([.][0-9]{1,3})?$')",messageExpression="'spec.version is \"' + self + '\", allowed are releases such as \"3.5.21\"'"
	// +optional
	Version string `json:"version,omitempty"`

	// paused makes the operator observe only.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pod configures the members' pods.
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`

	// TLS configures your own certificates. Without them nothing is encrypted.
	// +optional
	TLS *TLSPolicy `json:"TLS,omitempty"`
}

// PodPolicy is added to every member's pod.
type PodPolicy struct {
	// labels are additional labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// nodeSelector selects nodes by their labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity is the affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// antiAffinity, if true and affinity is not set, requires a separate node for each member.
	// Deprecated: use affinity.
	// +optional
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// resources are the requests and limits of etcd's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// tolerations are the taints that the pods tolerate.
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// etcdEnv is the environment of etcd's container. Variables for settings of the operator are
	// rejected.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('ETCD_NAME') && !e.name.startsWith('ETCD_DATA_DIR') && !e.name.startsWith('ETCD_WAL_DIR') && !e.name.startsWith('ETCD_CONFIG_FILE') && !e.name.startsWith('ETCD_FORCE_NEW_CLUSTER') && !e.name.startsWith('ETCD_STRICT_RECONFIG_CHECK') && !e.name.startsWith('ETCD_DISCOVERY') && !e.name.startsWith('ETCD_PROXY') && !e.name.startsWith('ETCD_ENABLE_V2') && !e.name.startsWith('ETCD_INITIAL_CLUSTER') && !e.name.startsWith('ETCD_INITIAL_ADVERTISE') && !e.name.startsWith('ETCD_LISTEN_') && !e.name.startsWith('ETCD_ADVERTISE_') && !e.name.startsWith('ETCD_PEER_') && !e.name.startsWith('ETCD_CERT_FILE') && !e.name.startsWith('ETCD_KEY_FILE') && !e.name.startsWith('ETCD_TRUSTED_CA_FILE') && !e.name.startsWith('ETCD_CA_FILE') && !e.name.startsWith('ETCD_CLIENT_CERT_AUTH') && !e.name.startsWith('ETCD_AUTO_TLS'))",message="spec.pod.etcdEnv must not set what the operator decides: names, URLs, membership, the data directory and the TLS files"
	// +listType=map
	// +listMapKey=name
	// +optional
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty"`

	// persistentVolumeClaimSpec is the claim for each member's volume. Without it the data is
	// deleted with its pod.
	// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="spec.pod.persistentVolumeClaimSpec.storageClassName cannot be changed: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) || self.storageClassName.size() <= 253",message="spec.pod.persistentVolumeClaimSpec.storageClassName must be at most 253 characters long"
	// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity('64Mi')) >= 0",message="spec.pod.persistentVolumeClaimSpec.resources.requests.storage must be at least 64Mi: etcd reserves log files of that size"
	// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests && has(oldSelf.resources) && has(oldSelf.resources.requests) && 'storage' in oldSelf.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity(string(oldSelf.resources.requests['storage']))) >= 0",message="spec.pod.persistentVolumeClaimSpec.resources.requests.storage cannot shrink: volumes only grow"
	// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests) || (has(oldSelf.resources) && has(oldSelf.resources.requests) && 'storage' in oldSelf.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity('8Gi')) >= 0",message="spec.pod.persistentVolumeClaimSpec.resources.requests.storage cannot shrink: without it volumes have 8Gi"
	// +optional
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// annotations are additional annotations.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// busyboxImage is the image of a former init container. It has no effect.
	// +optional
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// securityContext is the security context of the pods.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// DNSTimeoutInSecond is the number of seconds that a former init container waited for DNS.
	// It has no effect.
	// +optional
	DNSTimeoutInSecond int64 `json:"DNSTimeoutInSecond,omitempty"`

	// ClusterDomain is the DNS domain of the Kubernetes cluster, such as ".cluster.local".
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[.]?([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?[.]?$')",messageExpression="'spec.pod.ClusterDomain is \"' + self + '\", allowed are DNS domains such as \".cluster.local\"'"
	// +optional
	ClusterDomain string `json:"ClusterDomain"`
}

// TLSPolicy configures the encryption of traffic.
type TLSPolicy struct {
	// static configures your own certificates.
	// +optional
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS names the Secrets with your own certificates.
//
// +kubebuilder:validation:XValidation:rule="(self.?operatorSecret.orValue(\"\") == \"\") == (self.?member.serverSecret.orValue(\"\") == \"\")",message="spec.TLS.static.member.serverSecret and spec.TLS.static.operatorSecret belong together: the operator is a client of the members"
type StaticTLS struct {
	// member names the Secrets of the members.
	// +optional
	Member *MemberSecret `json:"member,omitempty"`

	// operatorSecret is the Secret with etcd-client.crt, etcd-client.key and etcd-client-ca.crt.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	OperatorSecret string `json:"operatorSecret,omitempty"`
}

// MemberSecret names the Secrets with the members' certificates.
type MemberSecret struct {
	// peerSecret is the Secret with peer.crt, peer.key and peer-ca.crt.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PeerSecret string `json:"peerSecret,omitempty"`

	// serverSecret is the Secret with server.crt, server.key and server-ca.crt.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServerSecret string `json:"serverSecret,omitempty"`
}

// ClusterStatus is the observed state of an EtcdCluster.
type ClusterStatus struct {
	// phase is Creating, Running or Failed.
	// +optional
	Phase string `json:"phase,omitempty"`

	// reason is why the cluster failed.
	// +optional
	Reason string `json:"reason,omitempty"`

	// controlPaused is true while the operator observes only.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// conditions are Available, Recovering, Scaling and Upgrading.
	// +optional
	Conditions []ClusterCondition `json:"conditions,omitempty"`

	// size is the number of members.
	// +optional
	Size int `json:"size"`

	// serviceName is the name of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// clientPort is the port of the Service for clients.
	// +optional
	ClientPort int `json:"clientPort,omitempty"`

	// members are the names of the members.
	// +optional
	Members MembersStatus `json:"members"`

	// currentVersion is the running version.
	// +optional
	CurrentVersion string `json:"currentVersion"`

	// targetVersion is the version that the members are changing to; otherwise it is empty.
	// +optional
	TargetVersion string `json:"targetVersion"`

	// v1 is the object's spec and status in v1, as JSON, including what v1beta2 cannot express.
	// The conversion writes it; clients cannot.
	// +optional
	V1 string `json:"v1,omitempty"`
}

// ClusterCondition is one condition of the cluster.
type ClusterCondition struct {
	// type is Available, Recovering, Scaling or Upgrading.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is when the condition was last written.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
	// lastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	// reason is the cause of the status in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the cause of the status in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// MembersStatus has the members' names.
type MembersStatus struct {
	// ready are the members that serve.
	// +optional
	Ready []string `json:"ready,omitempty"`
	// unready are the members that do not serve.
	// +optional
	Unready []string `json:"unready,omitempty"`
}

// EtcdClusterList is a list of legacy etcd clusters.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdCluster `json:"items"`
}
