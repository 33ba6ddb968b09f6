package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the state of the cluster in one word, for people.
// +kubebuilder:validation:Enum=Creating;Running;Degraded;Unavailable;Deleting
type Phase string

// Phases.
const (
	PhaseCreating    Phase = "Creating"
	PhaseRunning     Phase = "Running"
	PhaseDegraded    Phase = "Degraded"
	PhaseUnavailable Phase = "Unavailable"
	PhaseDeleting    Phase = "Deleting"
)

// MemberRole is the role of a member in the cluster.
// +kubebuilder:validation:Enum=Leader;Follower;Learner
type MemberRole string

// Roles of members.
const (
	MemberRoleLeader   MemberRole = "Leader"
	MemberRoleFollower MemberRole = "Follower"
	MemberRoleLearner  MemberRole = "Learner"
)

// MemberHealth is the health of a member.
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
type MemberHealth string

// Health of members.
const (
	MemberHealthHealthy   MemberHealth = "Healthy"
	MemberHealthUnhealthy MemberHealth = "Unhealthy"
	MemberHealthUnknown   MemberHealth = "Unknown"
)

// MaxMembers is the most members that the status lists. A cluster has more only if others add
// members to it.
const MaxMembers = 50

// EtcdClusterStatus is the observed state of an EtcdCluster.
type EtcdClusterStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the state of the cluster in one word: Creating, Running, Degraded (serves with
	// fewer members than wanted), Unavailable (has no quorum) or Deleting.
	// +optional
	Phase Phase `json:"phase,omitempty"` //nolint:kubeapilinter // the API of etcd-operator v1beta2 has it

	// conditions are Ready, Reconciling and Stalled as in every kind of Governor, and the
	// following. Available: a quorum serves. Degraded: at least one member does not serve.
	// FaultTolerant: at least one member may fail. QuorumLost: too many members have lost their
	// data. Alarm: etcd has raised an alarm. VolumesKept: there are volumes of members that are not
	// in etcd's list, and that Governor did not remove. AuthorityRevoked, with spec.tls.revokeBefore: no
	// member trusts an authority that was created earlier.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ready is the number of serving members and of wanted members, such as "3/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// replicas is the number of members.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of members that serve.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the pods, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// members are the members of the cluster, oldest first; of more than 50, the oldest 50.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`

	// leader is the name of the leading member.
	// +optional
	Leader string `json:"leader,omitempty"`

	// clusterID is the cluster's ID in hexadecimal, as etcd prints it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// endpoints are the URLs for clients.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Endpoints []string `json:"endpoints,omitempty"`

	// serviceName is the name of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// clientSecretName is the name of the Secret for clients, with tls.crt, tls.key and ca.crt.
	// It is empty without TLS.
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`

	// volumeRetention is what Kubernetes does with the volumes when the object is deleted: Delete while
	// the object may own at least one of them. It is empty for data without volumes. While it is Delete
	// and spec.storage.retention is Retain, the API server refuses the deletion.
	// +optional
	VolumeRetention Retention `json:"volumeRetention,omitempty"`

	// networkPolicy is the spec.networkPolicy that is in effect. A policy can hold its change.
	// +optional
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// version describes the running and the wanted version.
	// +optional
	Version VersionStatus `json:"version,omitempty"`

	// bootstrap is the cluster's identity, which the operator cannot derive from other objects. Do
	// not edit it.
	// +optional
	Bootstrap *BootstrapStatus `json:"bootstrap,omitempty"`

	// v1beta2 is the spec and the status as last written in v1beta2, as JSON, where v1 cannot
	// express them. Do not edit it.
	// +optional
	V1Beta2 string `json:"v1beta2,omitempty"`
}

// VersionStatus describes the running and the wanted version.
type VersionStatus struct {
	// current is the oldest running version.
	// +optional
	Current string `json:"current,omitempty"`

	// target is the version that the members have, or are changing to.
	// +optional
	Target string `json:"target,omitempty"`

	// chosen is the version that the operator chose at creation for a spec without one. It
	// stays, so that an upgrade of the operator restarts nothing.
	// +optional
	Chosen string `json:"chosen,omitempty"`
}

// BootstrapStatus is the state that must survive the operator and cannot be observed. Governor writes
// it before any step relies on it.
type BootstrapStatus struct {
	// token identifies this cluster to its members: they do not talk to members with another
	// token.
	// +required
	Token string `json:"token"`

	// initialMembers are the names of the first members.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +required
	InitialMembers []string `json:"initialMembers"`

	// nextMember is the number of the next new member. Names are never reused.
	// +required
	NextMember int64 `json:"nextMember"`

	// firstVersion is the version at the cluster's creation. It is empty for a cluster that an
	// older operator created.
	// +optional
	FirstVersion string `json:"firstVersion,omitempty"`

	// formed is true once the cluster exists. From then on no member may bootstrap a new
	// cluster.
	// +optional
	Formed bool `json:"formed,omitempty"`

	// triedSpreads are digests of member placements that a new member did not improve. Governor
	// adds no other member for them.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	TriedSpreads []string `json:"triedSpreads,omitempty"`
}

// MemberStatus is the observed state of one member.
type MemberStatus struct {
	// name is the name of the member and of its StatefulSet.
	// +required
	Name string `json:"name"`

	// id is the member's ID in etcd, in hexadecimal.
	// +optional
	ID string `json:"id,omitempty"`

	// role is Leader, Follower, Learner, or empty if the member is not in the member list. While
	// no quorum answers, it is the last known role.
	// +optional
	Role MemberRole `json:"role,omitempty"`

	// version is the version that the member runs, or ran when it last answered.
	// +optional
	Version string `json:"version,omitempty"`

	// health is Healthy, Unhealthy or Unknown.
	// +required
	Health MemberHealth `json:"health"`

	// since is the time of the last change of health.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// dbSize is the size of the member's database, rounded down to a mebibyte.
	// +optional
	DBSize *resource.Quantity `json:"dbSize,omitempty"`

	// node is the name of the member's node.
	// +optional
	Node string `json:"node,omitempty"`

	// problem is the problem of the member's pod or data, such as CrashLoopBackOff or DataLost;
	// empty if there is none.
	// +optional
	Problem string `json:"problem,omitempty"`

	// maintenance is the last maintenance of the member's node, until the member is healthy again.
	// +optional
	Maintenance *NodeMaintenance `json:"maintenance,omitempty"`
}

// NodeMaintenance is a time in which a node is cordoned, or named in a policy's
// nodeMaintenance.
type NodeMaintenance struct {
	// node is the name of the node.
	// +required
	Node string `json:"node"`

	// ended is when the operator observed the end of the maintenance; absent while it continues.
	// The member then has spec.replaceAfter to answer.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`
}
