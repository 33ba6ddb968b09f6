package v1

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster is a cluster of etcd members with storage of their own, behind one
// Service for clients.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=etcdclusters,shortName=etcd,categories=all;governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Members that serve, of those wanted"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.current`,description="Oldest version that runs"
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leader`,description="Member that leads"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="What it is doing, or why it is not ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,priority=1,description="The state in one word"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.version.target`,priority=1,description="Version wanted"
// +kubebuilder:printcolumn:name="Endpoints",type=string,JSONPath=`.status.endpoints`,priority=1,description="Where clients find it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 46 || (has(self.status) && has(self.status.phase))",message="metadata.name must be at most 46 characters long: Kubernetes labels a member's pod with the name, the member's number and a hash"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and have only small letters, digits and '-': Services are named after it"
type EtcdCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What you want.
	// +kubebuilder:default={}
	Spec EtcdClusterSpec `json:"spec,omitempty"`

	// What is, written by the operator.
	// +optional
	Status EtcdClusterStatus `json:"status,omitempty"`
}

// EtcdClusterSpec is the wanted state.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.image) && has(self.repository))",message="spec.image and spec.repository exclude each other: set repository to take releases from another registry, or image to run a build of your own"
// +kubebuilder:validation:XValidation:rule="!has(self.image) || has(self.version)",message="spec.image needs spec.version: the operator must know which version of etcd your image has"
// +kubebuilder:validation:XValidation:rule="has(self.clusterDomain) == has(oldSelf.clusterDomain)",message="spec.clusterDomain cannot be added or removed later: it is part of the names by which members know each other"
type EtcdClusterSpec struct {
	// Number of members, 1 to 9. An odd number is advised: an even one tolerates no
	// more failures than the odd number below it.
	// +kubebuilder:default=3
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9",message="spec.size must be 1 to 9; to delete the cluster, delete the EtcdCluster"
	// +optional
	Size int32 `json:"size"`

	// Release of etcd, such as "3.6.16". A minor release such as "3.6" means its
	// newest release that this operator knows. Without it the operator chooses the
	// newest that it is tested with when the cluster is created, writes it to
	// status.version.chosen and stays with it. A change is rolled out member by
	// member, one minor release at a time; going back a minor release is refused.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^3[.][0-9]{1,2}([.][0-9]{1,3})?$')",messageExpression="'spec.version is \"' + self + '\", allowed are releases such as \"3.6.16\" and minor releases such as \"3.6\"'"
	// +optional
	Version string `json:"version,omitempty"`

	// Repository of etcd's images; the tag is "v" and the version. The default is
	// quay.io/coreos/etcd.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Repository string `json:"repository,omitempty"`

	// Image to run instead of a release; etcd must be on its PATH and have the
	// version in spec.version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Image string `json:"image,omitempty"`

	// Where members keep their data.
	// +kubebuilder:default={medium: Persistent, size: "8Gi"}
	// +optional
	Storage StorageSpec `json:"storage,omitempty"`

	// How traffic is encrypted and who may connect.
	// +kubebuilder:default={mode: Managed}
	// +optional
	TLS TLSSpec `json:"tls,omitempty"`

	// ReplaceAfter is how long a member may be silent before Governor replaces it, if the
	// others have a quorum. A replacement costs a full copy of the data. A member on a
	// cordoned node is waited for, however long. 30s to 168h, the default is 5m.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('168h')",messageExpression="'spec.replaceAfter is \"' + self + '\", allowed are durations from \"30s\" to \"168h\"'"
	// +optional
	ReplaceAfter *metav1.Duration `json:"replaceAfter,omitempty"`

	// Rebalance is what happens when the loss of one zone or node would break the quorum, and
	// another zone or node with room would end that. Automatic moves one member at a time: a
	// new member joins and serves, and then an old one goes, which costs a full copy of the
	// data. Manual, the default, only reports it in the condition FaultTolerant.
	// +kubebuilder:default=Manual
	// +optional
	Rebalance Rebalance `json:"rebalance,omitempty"`

	// Limits of etcd's own.
	// +optional
	Options OptionsSpec `json:"options,omitempty"`

	// What to add to the pods.
	// +optional
	Pod PodSettings `json:"pod,omitempty"`

	// Who may reach the pods over the network.
	// +optional
	NetworkPolicy NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// DNS domain of the Kubernetes cluster, such as "cluster.local", to be added to
	// the members' names. Without it names end in ".svc", which resolves in every
	// cluster.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'spec.clusterDomain is \"' + self + '\", allowed are DNS domains without a dot at the beginning or end, such as \"cluster.local\"'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'spec.clusterDomain is \"' + oldSelf + '\" and cannot be changed: it is part of the names by which members know each other'"
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// True makes the operator observe only: it repairs and changes nothing.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Medium is what data is kept on.
type Medium string

const (
	// Persistent keeps data on a PersistentVolumeClaim per member.
	Persistent Medium = "Persistent"
	// Ephemeral keeps data on the node's disk, as long as the pod lives.
	Ephemeral Medium = "Ephemeral"
	// Memory keeps data in memory, as long as the pod lives.
	Memory Medium = "Memory"
)

// Rebalance says who moves members to a better place.
// +kubebuilder:validation:Enum=Manual;Automatic
type Rebalance string

// Who moves members.
const (
	RebalanceManual    Rebalance = "Manual"
	RebalanceAutomatic Rebalance = "Automatic"
)

// Retention is what becomes of volumes when the cluster is deleted.
type Retention string

const (
	// Delete deletes them.
	Delete Retention = "Delete"
	// Retain keeps them; no later cluster mounts them by itself.
	Retain Retention = "Retain"
)

// StorageSpec says where members keep their data.
//
// +kubebuilder:validation:XValidation:rule="self.medium == oldSelf.medium",messageExpression="'spec.storage.medium is ' + oldSelf.medium + ' and cannot be changed to ' + self.medium + ': create another cluster'"
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="spec.storage.storageClassName cannot be changed: create another cluster"
// +kubebuilder:validation:XValidation:rule="self.medium == 'Persistent' || !has(self.storageClassName)",messageExpression="'spec.storage.storageClassName has no meaning with spec.storage.medium ' + self.medium + ': remove one of them'"
// +kubebuilder:validation:XValidation:rule="self.medium == 'Persistent' || !has(self.retention) || self.retention == 'Delete'",messageExpression="'spec.storage.retention Retain is impossible with spec.storage.medium ' + self.medium + ': there is no volume to keep'"
// +kubebuilder:validation:XValidation:rule="self.medium != 'Persistent' || quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",messageExpression="'spec.storage.size is ' + string(oldSelf.size) + ' and cannot shrink to ' + string(self.size) + ': volumes only grow'"
type StorageSpec struct {
	// Persistent, Ephemeral or Memory. With the latter two a member that loses its
	// pod has lost its data and is replaced, and all pods lost at once means all
	// data lost.
	// +kubebuilder:default=Persistent
	// +kubebuilder:validation:Enum=Persistent;Ephemeral;Memory
	// +optional
	Medium Medium `json:"medium,omitempty"`

	// Size of each member's volume. Persistent volumes grow with it if their
	// storage class allows that.
	// +kubebuilder:default="8Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",messageExpression="'spec.storage.size is ' + string(self) + ', it must be at least 64Mi: etcd reserves log files of that size'"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// Storage class of the volumes; without it the default class. An empty name means
	// volumes that have no class, as in a PersistentVolumeClaim.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// What becomes of the volumes when the EtcdCluster is deleted. Retain keeps them
	// with their data; Delete makes the EtcdCluster their owner, so that Kubernetes
	// deletes them with it. The default is Retain; Ephemeral and Memory have no volume
	// to keep. The volume of a member that is removed or replaced is always deleted.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +optional
	Retention Retention `json:"retention,omitempty"`
}

// TLSMode is where certificates come from.
type TLSMode string

const (
	// Managed certificates are made and renewed by the operator.
	Managed TLSMode = "Managed"
	// Secrets have certificates of your own.
	Secrets TLSMode = "Secrets"
	// Disabled means no encryption and no authentication. (Off would be a boolean in
	// YAML.)
	Disabled TLSMode = "Disabled"
)

// TLSSpec says how traffic is encrypted.
//
// +kubebuilder:validation:XValidation:rule="self.mode == oldSelf.mode",messageExpression="'spec.tls.mode is ' + oldSelf.mode + ' and cannot be changed to ' + self.mode + ': create another cluster'"
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Secrets') == has(self.secrets)",messageExpression="'spec.tls.mode is ' + self.mode + ': spec.tls.secrets must be set with the mode Secrets, and only then'"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Managed' || !has(self.revokeBefore)",messageExpression="'spec.tls.revokeBefore has no meaning with spec.tls.mode ' + self.mode + ': Governor revokes only authorities that it has made'"
type TLSSpec struct {
	// Managed makes an authority for this cluster and certificates for members and
	// clients, and renews them; clients mount the Secret <name>-client-tls. Secrets
	// uses your own. Disabled encrypts nothing.
	// +kubebuilder:default=Managed
	// +kubebuilder:validation:Enum=Managed;Secrets;Disabled
	// +optional
	Mode TLSMode `json:"mode,omitempty"`

	// Secrets with your own certificates.
	// +optional
	Secrets *TLSSecrets `json:"secrets,omitempty"`

	// RevokeBefore revokes the authorities of this cluster that were made before a
	// time, for instance because a key has leaked. Members restart twice, one at a time;
	// then they refuse every certificate of a former authority. It applies to mode
	// Managed. A time in the future takes effect when it has come. Without it, a former
	// authority is trusted until it expires.
	// +optional
	RevokeBefore *metav1.Time `json:"revokeBefore,omitempty"`
}

// TLSSecrets are names of Secrets in the namespace of the cluster. Each has
// tls.crt, tls.key and ca.crt, or the keys of the legacy API.
//
// +kubebuilder:validation:XValidation:rule="has(self.peer) || has(self.server)",message="spec.tls.secrets must name peer, or server and client, or all three"
// +kubebuilder:validation:XValidation:rule="has(self.server) == has(self.client)",message="spec.tls.secrets.server and spec.tls.secrets.client belong together: the operator is a client of the members"
// +kubebuilder:validation:XValidation:rule="has(self.peer) == has(oldSelf.peer) && has(self.server) == has(oldSelf.server)",message="spec.tls.secrets: peer and server can be renamed, but not added or removed: create another cluster"
type TLSSecrets struct {
	// Secret with the certificate that members show each other (legacy keys:
	// peer.crt, peer.key, peer-ca.crt). Without it members talk unencrypted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Peer string `json:"peer,omitempty"`

	// Secret with the certificate that members show clients (legacy keys:
	// server.crt, server.key, server-ca.crt). Without it clients talk unencrypted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Server string `json:"server,omitempty"`

	// Secret with the certificate that the operator shows members (legacy keys:
	// etcd-client.crt, etcd-client.key, etcd-client-ca.crt).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Client string `json:"client,omitempty"`
}

// CompactionMode is by what etcd chooses the revisions that it forgets.
type CompactionMode string

const (
	// Periodic forgets what is older than a time.
	Periodic CompactionMode = "Periodic"
	// Revision forgets all but a number of revisions.
	Revision CompactionMode = "Revision"
)

// OptionsSpec are limits of etcd's own.
//
// +kubebuilder:validation:XValidation:rule="has(self.compactionMode) == has(self.compactionRetention)",message="spec.options.compactionMode and spec.options.compactionRetention belong together: set both or none"
type OptionsSpec struct {
	// Size of the database at which etcd refuses writes, at most 8Gi. The default
	// follows from spec.storage.size, so that the log and a second copy of the
	// database fit: half of what 512Mi leave, at least a quarter, at most 8Gi. That
	// is 256Mi for 1Gi, 3840Mi for 8Gi. Members of an existing cluster get a changed
	// default with their next restart.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('8Gi')) <= 0",messageExpression="'spec.options.quota is ' + string(self) + ', allowed are 16Mi to 8Gi'"
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`

	// Periodic or Revision.
	// +kubebuilder:validation:Enum=Periodic;Revision
	// +optional
	CompactionMode CompactionMode `json:"compactionMode,omitempty"`

	// How much history to keep: a duration such as "1h" with Periodic, a number
	// such as "1000" with Revision.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[smh]?$')",messageExpression="'spec.options.compactionRetention is \"' + self + '\", allowed are durations such as \"1h\" and numbers such as \"1000\"'"
	// +optional
	CompactionRetention string `json:"compactionRetention,omitempty"`

	// Number of writes after which etcd writes a snapshot of its log to disk.
	// +kubebuilder:validation:Minimum=1
	// +optional
	SnapshotCount int64 `json:"snapshotCount,omitempty"`
}

// NetworkPolicySpec says who may reach the pods.
//
// +kubebuilder:validation:XValidation:rule="(has(self.enabled) && self.enabled) || !has(self.clients)",message="spec.networkPolicy.clients needs spec.networkPolicy.enabled: true"
type NetworkPolicySpec struct {
	// True lets only members reach the peer port.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// Clients may reach the client port and the metrics port; without it everybody may.
	// Members and the operator always may.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Clients []networkingv1.NetworkPolicyPeer `json:"clients,omitempty"`
}

// EtcdClusterList is a list of etcd clusters.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdCluster `json:"items"`
}

// StatusFields implements lifecycle.Resource.
func (c *EtcdCluster) StatusFields() (*int64, *[]metav1.Condition) {
	return &c.Status.ObservedGeneration, &c.Status.Conditions
}

// IsPaused reports whether spec.paused is set.
func (c *EtcdCluster) IsPaused() bool { return c.Spec.Paused }
