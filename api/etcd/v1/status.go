package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the state in one word, for humans.
type Phase string

// The phases.
const (
	Creating    Phase = "Creating"
	Running     Phase = "Running"
	Degraded    Phase = "Degraded"
	Unavailable Phase = "Unavailable"
	Deleting    Phase = "Deleting"
)

// EtcdClusterStatus is the observed state.
type EtcdClusterStatus struct {
	// Generation of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// The state in one word: Creating, Running, Degraded (serves with fewer members
	// than wanted), Unavailable (has no quorum) or Deleting.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Ready, Reconciling and Stalled as in every kind of Governor; Available: a
	// quorum serves; Degraded: some member does not; FaultTolerant: a member may
	// fail; QuorumLost: data of too many members is lost; Alarm: etcd itself has
	// raised one; AuthorityRevoked, with spec.tls.revokeBefore: no member trusts an
	// authority that was made before.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Members that serve, of those wanted, such as "3/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// Number of members.
	// +optional
	Replicas int32 `json:"replicas"`

	// Number of members that serve.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Label selector of the pods, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// The members, sorted by age.
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`

	// Name of the member that leads.
	// +optional
	Leader string `json:"leader,omitempty"`

	// The cluster's ID as etcd prints it, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// URLs for clients.
	// +listType=atomic
	// +optional
	Endpoints []string `json:"endpoints,omitempty"`

	// Name of the Service for clients.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// Name of the Secret for clients, with tls.crt, tls.key and ca.crt; empty
	// without TLS.
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`

	// Versions.
	// +optional
	Version VersionStatus `json:"version,omitempty"`

	// What the operator must remember about this cluster. Do not edit it.
	// +optional
	Memory *Memories `json:"memory,omitempty"`

	// Spec and status as they were last written in v1beta2, as JSON, where v1 cannot
	// express them. Do not edit it.
	// +optional
	V1Beta2 string `json:"v1beta2,omitempty"`
}

// VersionStatus tells which versions are meant and run.
type VersionStatus struct {
	// Oldest version that runs.
	// +optional
	Current string `json:"current,omitempty"`

	// Version that the members have, or are changing to.
	// +optional
	Target string `json:"target,omitempty"`

	// Version that the operator chose when the cluster was created, for a spec
	// without one. It stays, so that a new operator restarts nothing.
	// +optional
	Chosen string `json:"chosen,omitempty"`
}

// Memories are what must survive the operator and cannot be seen in the world. They are
// written before anything relies on it.
type Memories struct {
	// Token of this incarnation of the cluster: members of another incarnation do
	// not talk to it.
	Token string `json:"token"`

	// Members with which the cluster begins, by name.
	// +listType=atomic
	InitialMembers []string `json:"initialMembers"`

	// Number of the next new member. Names are never used again.
	NextMember int64 `json:"nextMember"`

	// Version with which the cluster began. It is empty for a cluster that an older
	// operator created.
	// +optional
	FirstVersion string `json:"firstVersion,omitempty"`

	// True once the cluster has come into being: from then on no member may begin
	// a new one.
	// +optional
	Formed bool `json:"formed,omitempty"`

	// TriedSpreads are digests of members' places that a new member did not better. No other
	// member is added for them.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	TriedSpreads []string `json:"triedSpreads,omitempty"`
}

// MemberStatus is one member.
type MemberStatus struct {
	// Name of the member, and of its StatefulSet.
	Name string `json:"name"`

	// ID in etcd, in hexadecimal.
	// +optional
	ID string `json:"id,omitempty"`

	// Leader, Follower, Learner, or empty if it is not in the member list; as last
	// known while no quorum answers.
	// +optional
	Role string `json:"role,omitempty"`

	// Version that it runs, or ran when it last answered.
	// +optional
	Version string `json:"version,omitempty"`

	// Healthy, Unhealthy or Unknown.
	Health string `json:"health"`

	// Since when it has been so.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Size of its database, in steps of a mebibyte.
	// +optional
	DBSize *resource.Quantity `json:"dbSize,omitempty"`

	// Node that it runs on.
	// +optional
	Node string `json:"node,omitempty"`

	// What hinders it.
	// +optional
	Trouble string `json:"trouble,omitempty"`
}
