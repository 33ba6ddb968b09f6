package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster is a cluster of etcd members, in the legacy API. Use v1 for new ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdclusters,shortName=etcd,categories=all;governor
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="Members wanted"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`,description="Version that runs"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="The state in one word"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 46 || (has(self.status) && has(self.status.phase))",message="metadata.name must be at most 46 characters long: Kubernetes labels a member's pod with the name, the member's number and a hash"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and have only small letters, digits and '-': Services are named after it"
// +kubebuilder:validation:XValidation:rule="(has(self.status) && has(self.status.v1)) == (has(oldSelf.status) && has(oldSelf.status.v1)) && (!has(self.status) || !has(self.status.v1) || self.status.v1 == oldSelf.status.v1)",message="status.v1 holds what v1beta2 cannot express and cannot be written in v1beta2: keep it, or write the object in v1"
type EtcdCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What you want.
	Spec ClusterSpec `json:"spec"`

	// What is, written by the operator.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is the wanted state. What v1 refuses is refused here too, for nothing
// is validated after a conversion.
//
// +kubebuilder:validation:XValidation:rule="self.?pod.persistentVolumeClaimSpec.hasValue() == oldSelf.?pod.persistentVolumeClaimSpec.hasValue()",message="spec.pod.persistentVolumeClaimSpec cannot be added or removed, for data cannot be moved: create another cluster"
// +kubebuilder:validation:XValidation:rule="(has(self.pod) && has(self.pod.ClusterDomain) ? self.pod.ClusterDomain : \"\") == (has(oldSelf.pod) && has(oldSelf.pod.ClusterDomain) ? oldSelf.pod.ClusterDomain : \"\")",message="spec.pod.ClusterDomain cannot be changed: it is part of the names by which members know each other"
// +kubebuilder:validation:XValidation:rule="(self.?TLS.static.member.peerSecret.orValue(\"\") == \"\") == (oldSelf.?TLS.static.member.peerSecret.orValue(\"\") == \"\") && (self.?TLS.static.member.serverSecret.orValue(\"\") == \"\") == (oldSelf.?TLS.static.member.serverSecret.orValue(\"\") == \"\")",message="spec.TLS.static: the Secrets of members can be renamed, but not added or removed: create another cluster"
type ClusterSpec struct {
	// Number of members, 1 to 9.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9",message="spec.size must be 1 to 9; to delete the cluster, delete the EtcdCluster"
	Size int32 `json:"size"`

	// Repository of etcd's images; the default is quay.io/coreos/etcd.
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Repository string `json:"repository,omitempty"`

	// Release of etcd, such as "3.2.13", which is also the default of a new cluster.
	// An update without it leaves the release as it is.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v?3[.][0-9]{1,2}([.][0-9]{1,3})?$')",messageExpression="'spec.version is \"' + self + '\", allowed are releases such as \"3.5.21\"'"
	// +optional
	Version string `json:"version,omitempty"`

	// True makes the operator observe only.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// What to add to the pods.
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`

	// Certificates of your own; without them there is no encryption.
	// +optional
	TLS *TLSPolicy `json:"TLS,omitempty"`
}

// PodPolicy is added to every member's pod.
type PodPolicy struct {
	// Labels to add.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Labels that a node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// True, without affinity, demands a node of its own for each member.
	// Deprecated: use affinity.
	// +optional
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// Requests and limits of etcd's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Taints that the pods tolerate.
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Environment of etcd's container. What the operator decides is refused.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('ETCD_NAME') && !e.name.startsWith('ETCD_DATA_DIR') && !e.name.startsWith('ETCD_WAL_DIR') && !e.name.startsWith('ETCD_CONFIG_FILE') && !e.name.startsWith('ETCD_FORCE_NEW_CLUSTER') && !e.name.startsWith('ETCD_STRICT_RECONFIG_CHECK') && !e.name.startsWith('ETCD_DISCOVERY') && !e.name.startsWith('ETCD_PROXY') && !e.name.startsWith('ETCD_ENABLE_V2') && !e.name.startsWith('ETCD_INITIAL_CLUSTER') && !e.name.startsWith('ETCD_INITIAL_ADVERTISE') && !e.name.startsWith('ETCD_LISTEN_') && !e.name.startsWith('ETCD_ADVERTISE_') && !e.name.startsWith('ETCD_PEER_') && !e.name.startsWith('ETCD_CERT_FILE') && !e.name.startsWith('ETCD_KEY_FILE') && !e.name.startsWith('ETCD_TRUSTED_CA_FILE') && !e.name.startsWith('ETCD_CA_FILE') && !e.name.startsWith('ETCD_CLIENT_CERT_AUTH') && !e.name.startsWith('ETCD_AUTO_TLS'))",message="spec.pod.etcdEnv must not set what the operator decides: names, URLs, membership, the data directory and the TLS files"
	// +listType=map
	// +listMapKey=name
	// +optional
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty"`

	// Claim for each member's volume; without it data lives as long as the pod.
	// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="spec.pod.persistentVolumeClaimSpec.storageClassName cannot be changed: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) || self.storageClassName.size() <= 253",message="spec.pod.persistentVolumeClaimSpec.storageClassName must be at most 253 characters long"
	// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity('64Mi')) >= 0",message="spec.pod.persistentVolumeClaimSpec.resources.requests.storage must be at least 64Mi: etcd reserves log files of that size"
	// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests && has(oldSelf.resources) && has(oldSelf.resources.requests) && 'storage' in oldSelf.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity(string(oldSelf.resources.requests['storage']))) >= 0",message="spec.pod.persistentVolumeClaimSpec.resources.requests.storage cannot shrink: volumes only grow"
	// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests) || (has(oldSelf.resources) && has(oldSelf.resources.requests) && 'storage' in oldSelf.resources.requests) || quantity(string(self.resources.requests['storage'])).compareTo(quantity('8Gi')) >= 0",message="spec.pod.persistentVolumeClaimSpec.resources.requests.storage cannot shrink: without it volumes have 8Gi"
	// +optional
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// Annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Image of an init container that is not needed any more.
	// +optional
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// Security context of the pods.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// Seconds that an init container waited for DNS; it is not needed any more.
	// +optional
	DNSTimeoutInSecond int64 `json:"DNSTimeoutInSecond,omitempty"`

	// DNS domain of the Kubernetes cluster, such as ".cluster.local".
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[.]?([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?[.]?$')",messageExpression="'spec.pod.ClusterDomain is \"' + self + '\", allowed are DNS domains such as \".cluster.local\"'"
	// +optional
	ClusterDomain string `json:"ClusterDomain"`
}

// TLSPolicy says how traffic is encrypted.
type TLSPolicy struct {
	// Certificates of your own.
	// +optional
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS are certificates of your own.
//
// +kubebuilder:validation:XValidation:rule="(self.?operatorSecret.orValue(\"\") == \"\") == (self.?member.serverSecret.orValue(\"\") == \"\")",message="spec.TLS.static.member.serverSecret and spec.TLS.static.operatorSecret belong together: the operator is a client of the members"
type StaticTLS struct {
	// Certificates of the members.
	// +optional
	Member *MemberSecret `json:"member,omitempty"`

	// Secret with etcd-client.crt, etcd-client.key and etcd-client-ca.crt.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	OperatorSecret string `json:"operatorSecret,omitempty"`
}

// MemberSecret has the certificates of the members.
type MemberSecret struct {
	// Secret with peer.crt, peer.key and peer-ca.crt.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PeerSecret string `json:"peerSecret,omitempty"`

	// Secret with server.crt, server.key and server-ca.crt.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServerSecret string `json:"serverSecret,omitempty"`
}

// ClusterStatus is the observed state.
type ClusterStatus struct {
	// Creating, Running or Failed.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Why it failed.
	// +optional
	Reason string `json:"reason,omitempty"`

	// True while the operator observes only.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// Available, Recovering, Scaling and Upgrading.
	// +optional
	Conditions []ClusterCondition `json:"conditions,omitempty"`

	// Number of members.
	// +optional
	Size int `json:"size"`

	// Name of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// Port of the Service for clients.
	// +optional
	ClientPort int `json:"clientPort,omitempty"`

	// Names of the members.
	// +optional
	Members MembersStatus `json:"members"`

	// Version that runs.
	// +optional
	CurrentVersion string `json:"currentVersion"`

	// Version that the members are changing to; empty when they are not.
	// +optional
	TargetVersion string `json:"targetVersion"`

	// The object's spec and status in v1, as JSON, with all that v1beta2 cannot
	// express. The conversion writes it; clients cannot.
	// +optional
	V1 string `json:"v1,omitempty"`
}

// ClusterCondition is one fact about the cluster.
type ClusterCondition struct {
	// Available, Recovering, Scaling or Upgrading.
	Type string `json:"type"`
	// True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// When it was last written.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
	// When the status last changed.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	// Why, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Why, in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// MembersStatus are the members' names.
type MembersStatus struct {
	// Members that serve.
	// +optional
	Ready []string `json:"ready,omitempty"`
	// Members that do not.
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
