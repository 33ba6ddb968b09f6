package v1

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster is a cluster of etcd members, each with its own storage, behind one Service for
// clients.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=etcdclusters,shortName=etcdc,categories=governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Serving members and wanted members"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.current`,description="Oldest running version"
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leader`,description="Name of the leader"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,priority=1,description="State of the cluster in one word"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.version.target`,priority=1,description="Version that the members have or change to"
// +kubebuilder:printcolumn:name="Endpoints",type=string,JSONPath=`.status.endpoints`,priority=1,description="URLs for clients"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 46 || (has(self.status) && has(self.status.phase))",message="metadata.name must be at most 46 characters long: Kubernetes labels a member's pod with the name, the member's number and a hash"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and contain only lowercase letters, digits and '-': Services are named after it"
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the cluster.
	// +kubebuilder:default={}
	// +optional
	Spec EtcdClusterSpec `json:"spec,omitempty"`

	// status is the observed state of the cluster.
	// +optional
	Status EtcdClusterStatus `json:"status,omitempty"`
}

// EtcdClusterSpec is the desired state of an EtcdCluster.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.image) && has(self.repository))",message="spec.image and spec.repository exclude each other: set repository to take releases from another registry, or image to run a build of your own"
// +kubebuilder:validation:XValidation:rule="!has(self.image) || has(self.version)",message="spec.image needs spec.version: the operator must know which version of etcd your image has"
// +kubebuilder:validation:XValidation:rule="has(self.clusterDomain) == has(oldSelf.clusterDomain)",message="spec.clusterDomain cannot be added or removed later: it is part of the names by which members know each other"
type EtcdClusterSpec struct {
	// size is the number of members, 1 to 9; the default is 3. An odd number is recommended: an
	// even one tolerates no more failures than the odd number below it.
	// +kubebuilder:default=3
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9",message="spec.size must be 1 to 9; to delete the cluster, delete the EtcdCluster"
	// +optional
	Size int32 `json:"size"`

	// version is the release of etcd, such as "3.6.16". A minor release such as "3.6" stands for
	// its newest patch known to this operator. If it is not set, the operator chooses a release
	// at creation, records it in status.version.chosen and keeps it. The operator rolls out a
	// change member by member, one minor release at a time. It refuses a downgrade to an older
	// minor release.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^3[.][0-9]{1,2}([.][0-9]{1,3})?$')",messageExpression="'spec.version is \"' + self + '\", allowed are releases such as \"3.6.16\" and minor releases such as \"3.6\"'"
	// +optional
	Version string `json:"version,omitempty"`

	// repository is the repository of etcd's images; the tag is "v" and the version. The default
	// is quay.io/coreos/etcd.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Repository string `json:"repository,omitempty"`

	// image is an image to run instead of a release. etcd must be on its PATH and have the
	// version in spec.version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Image string `json:"image,omitempty"`

	// storage configures where members store their data.
	// +kubebuilder:default={medium: Persistent, size: "8Gi"}
	// +optional
	Storage StorageSpec `json:"storage,omitempty"`

	// tls configures encryption and client authentication.
	// +kubebuilder:default={mode: Managed}
	// +optional
	TLS TLSSpec `json:"tls,omitempty"`

	// replaceAfter is how long a member may be silent before Governor replaces it, if the others
	// have a quorum. A replacement copies all data. Governor waits without a limit for a member
	// on a cordoned node. 30s to 168h; the default is 5m.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('168h')",messageExpression="'spec.replaceAfter is \"' + self + '\", allowed are durations from \"30s\" to \"168h\"'"
	// +optional
	ReplaceAfter *metav1.Duration `json:"replaceAfter,omitempty"`

	// rebalance controls what happens when the loss of one zone or node would break the quorum,
	// and another zone or node has room. Automatic moves one member at a time: a new member
	// joins and serves, and Governor then removes an old one, which costs a full copy of the
	// data. Manual, the default, only reports it in the condition FaultTolerant.
	// +kubebuilder:default=Manual
	// +optional
	Rebalance Rebalance `json:"rebalance,omitempty"`

	// options configures etcd's limits.
	// +optional
	Options OptionsSpec `json:"options,omitempty"`

	// pod configures the members' pods.
	// +optional
	Pod PodSettings `json:"pod,omitempty"`

	// networkPolicy configures network access to the pods.
	// +optional
	NetworkPolicy NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// clusterDomain is the DNS domain of the Kubernetes cluster, such as "cluster.local". The
	// members' names end in it. If it is not set, names end in ".svc", which resolves in every
	// cluster.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'spec.clusterDomain is \"' + self + '\", allowed are DNS domains without a dot at the beginning or end, such as \"cluster.local\"'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'spec.clusterDomain is \"' + oldSelf + '\" and cannot be changed: it is part of the names by which members know each other'"
	// +optional
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// paused makes the operator observe only: it repairs and changes nothing.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Medium is the kind of storage for a member's data.
type Medium string

const (
	// MediumPersistent keeps data on a PersistentVolumeClaim per member.
	MediumPersistent Medium = "Persistent"
	// MediumEphemeral keeps data on the node's disk until the pod is deleted.
	MediumEphemeral Medium = "Ephemeral"
	// MediumMemory keeps data in memory until the pod is deleted.
	MediumMemory Medium = "Memory"
)

// Rebalance controls whether Governor moves members to a better zone or node.
// +kubebuilder:validation:Enum=Manual;Automatic
type Rebalance string

// Values of Rebalance.
const (
	RebalanceManual    Rebalance = "Manual"
	RebalanceAutomatic Rebalance = "Automatic"
)

// Retention controls what happens to the volumes when the cluster is deleted.
type Retention string

const (
	// RetentionDelete deletes them.
	RetentionDelete Retention = "Delete"
	// RetentionRetain keeps them; no later cluster mounts them by itself.
	RetentionRetain Retention = "Retain"
)

// StorageSpec configures where members store their data.
//
// +kubebuilder:validation:XValidation:rule="self.medium == oldSelf.medium",messageExpression="'spec.storage.medium is ' + oldSelf.medium + ' and cannot be changed to ' + self.medium + ': create another cluster'"
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="spec.storage.storageClassName cannot be changed: create another cluster"
// +kubebuilder:validation:XValidation:rule="self.medium == 'Persistent' || !has(self.storageClassName)",messageExpression="'spec.storage.storageClassName has no meaning with spec.storage.medium ' + self.medium + ': remove one of them'"
// +kubebuilder:validation:XValidation:rule="self.medium == 'Persistent' || !has(self.retention) || self.retention == 'Delete'",messageExpression="'spec.storage.retention Retain is impossible with spec.storage.medium ' + self.medium + ': there is no volume to keep'"
// +kubebuilder:validation:XValidation:rule="self.medium != 'Persistent' || quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",messageExpression="'spec.storage.size is ' + string(oldSelf.size) + ' and cannot shrink to ' + string(self.size) + ': volumes only grow'"
type StorageSpec struct {
	// medium is Persistent, Ephemeral or Memory. With the latter two a member loses its data
	// with its pod, and Governor replaces it. The loss of all pods at once is the loss of all
	// data. The default is Persistent.
	// +kubebuilder:default=Persistent
	// +kubebuilder:validation:Enum=Persistent;Ephemeral;Memory
	// +optional
	Medium Medium `json:"medium,omitempty"`

	// size is the size of each member's volume. The default is 8Gi. If it is raised, persistent
	// volumes grow, provided their storage class allows expansion.
	// +kubebuilder:default="8Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",messageExpression="'spec.storage.size is ' + string(self) + ', it must be at least 64Mi: etcd reserves log files of that size'"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName is the storage class of the volumes. If it is not set, the default class
	// applies. An empty name means volumes without a class, as in a PersistentVolumeClaim.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// retention controls what happens to the volumes when the EtcdCluster is deleted. Retain
	// keeps them with their data. Delete makes the EtcdCluster their owner, so that Kubernetes
	// deletes them with it. The default is Retain; Ephemeral and Memory have no volume to keep.
	// Governor always deletes the volume of a member that it removes or replaces.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +optional
	Retention Retention `json:"retention,omitempty"`
}

// TLSMode is the source of the certificates.
type TLSMode string

const (
	// TLSModeManaged means that the operator creates and renews the certificates.
	TLSModeManaged TLSMode = "Managed"
	// TLSModeSecrets means that you provide the certificates.
	TLSModeSecrets TLSMode = "Secrets"
	// TLSModeDisabled means no encryption and no authentication. ("Off" is a boolean in YAML.)
	TLSModeDisabled TLSMode = "Disabled"
)

// TLSSpec configures the encryption of traffic.
//
// +kubebuilder:validation:XValidation:rule="self.mode == oldSelf.mode",messageExpression="'spec.tls.mode is ' + oldSelf.mode + ' and cannot be changed to ' + self.mode + ': create another cluster'"
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Secrets') == has(self.secrets)",messageExpression="'spec.tls.mode is ' + self.mode + ': spec.tls.secrets must be set with the mode Secrets, and only then'"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Managed' || !has(self.revokeBefore)",messageExpression="'spec.tls.revokeBefore has no meaning with spec.tls.mode ' + self.mode + ': Governor revokes only authorities that it has created'"
type TLSSpec struct {
	// mode is Managed, Secrets or Disabled; the default is Managed. Managed creates a
	// certificate authority for this cluster, and creates and renews certificates for members
	// and clients. Clients mount the Secret <name>-client-tls. Secrets uses your own
	// certificates. Disabled encrypts nothing.
	// +kubebuilder:default=Managed
	// +kubebuilder:validation:Enum=Managed;Secrets;Disabled
	// +optional
	Mode TLSMode `json:"mode,omitempty"`

	// secrets names the Secrets with your own certificates. It is required with mode Secrets,
	// and forbidden otherwise.
	// +optional
	Secrets *TLSSecrets `json:"secrets,omitempty"`

	// revokeBefore revokes the authorities of this cluster that were created before this time,
	// for instance because a key has leaked. Members restart twice, one at a time, and then
	// refuse every certificate of a revoked authority. It applies to mode Managed. A time in the
	// future takes effect at that time. If it is not set, a replaced authority is trusted until
	// it expires.
	// +optional
	RevokeBefore *metav1.Time `json:"revokeBefore,omitempty"`
}

// TLSSecrets names Secrets in the namespace of the cluster. Each contains tls.crt, tls.key and
// ca.crt, or the keys of the legacy API.
//
// +kubebuilder:validation:XValidation:rule="has(self.peer) || has(self.server)",message="spec.tls.secrets must name peer, or server and client, or all three"
// +kubebuilder:validation:XValidation:rule="has(self.server) == has(self.client)",message="spec.tls.secrets.server and spec.tls.secrets.client belong together: the operator is a client of the members"
// +kubebuilder:validation:XValidation:rule="has(self.peer) == has(oldSelf.peer) && has(self.server) == has(oldSelf.server)",message="spec.tls.secrets: peer and server can be renamed, but not added or removed: create another cluster"
type TLSSecrets struct {
	// peer is the Secret with the certificate that members present to each other (legacy keys:
	// peer.crt, peer.key, peer-ca.crt). With more than one member it must have the names
	// "*.<name>.<namespace>.svc" and "*.<name>.<namespace>.svc.<cluster domain>", or
	// those of every pod. If it is not set, traffic between members is not encrypted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Peer string `json:"peer,omitempty"`

	// server is the Secret with the certificate that members present to clients (legacy keys:
	// server.crt, server.key, server-ca.crt). If it is not set, client traffic is not encrypted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Server string `json:"server,omitempty"`

	// client is the Secret with the certificate that the operator presents to members (legacy
	// keys: etcd-client.crt, etcd-client.key, etcd-client-ca.crt).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Client string `json:"client,omitempty"`
}

// CompactionMode selects the revisions that etcd compacts.
type CompactionMode string

const (
	// CompactionModePeriodic compacts revisions older than a duration.
	CompactionModePeriodic CompactionMode = "Periodic"
	// CompactionModeRevision compacts all but the newest revisions.
	CompactionModeRevision CompactionMode = "Revision"
)

// OptionsSpec configures etcd's limits.
//
// +kubebuilder:validation:XValidation:rule="has(self.compactionMode) == has(self.compactionRetention)",message="spec.options.compactionMode and spec.options.compactionRetention belong together: set both or none"
// +kubebuilder:validation:XValidation:rule="!has(self.compactionMode) || self.compactionMode != 'Revision' || !has(self.compactionRetention) || self.compactionRetention.matches('^[0-9]+$')",message="spec.options.compactionRetention must be a number of revisions with compactionMode Revision, such as \"1000\": with a duration etcd would never compact"
type OptionsSpec struct {
	// quota is the size of the database at which etcd refuses writes, 16Mi to 8Gi. The default
	// is computed from spec.storage.size, so that the log and a second copy of the database fit.
	// It is half of the size less 512Mi, at least a quarter of the size, and at most 8Gi: 256Mi
	// for 1Gi, 3840Mi for 8Gi. Members of an existing cluster adopt a changed default at their
	// next restart.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('8Gi')) <= 0",messageExpression="'spec.options.quota is ' + string(self) + ', allowed are 16Mi to 8Gi'"
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`

	// compactionMode is Periodic or Revision. If it is not set, etcd does not compact
	// automatically.
	// +kubebuilder:validation:Enum=Periodic;Revision
	// +optional
	CompactionMode CompactionMode `json:"compactionMode,omitempty"`

	// compactionRetention is how much history to keep: a duration such as "1h" with Periodic, a
	// number of revisions such as "1000" with Revision.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[smh]?$')",messageExpression="'spec.options.compactionRetention is \"' + self + '\", allowed are durations such as \"1h\" and numbers such as \"1000\"'"
	// +optional
	CompactionRetention string `json:"compactionRetention,omitempty"`

	// snapshotCount is the number of writes after which etcd writes a snapshot of its log to
	// disk. If it is not set, etcd's default applies.
	// +kubebuilder:validation:Minimum=1
	// +optional
	SnapshotCount int64 `json:"snapshotCount,omitempty"`
}

// NetworkPolicySpec configures network access to the pods.
//
// +kubebuilder:validation:XValidation:rule="(has(self.enabled) && self.enabled) || !has(self.clients)",message="spec.networkPolicy.clients needs spec.networkPolicy.enabled: true"
type NetworkPolicySpec struct {
	// enabled creates a NetworkPolicy that admits only members and the operator to the peer
	// port.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// clients are the peers that may access the client port and the metrics port. If it is not
	// set, every peer may. Members and the operator always may.
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
