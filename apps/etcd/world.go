package etcd

import (
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// World is one cluster as observed.
type World struct {
	// Listed reports whether a member with a quorum returned etcd's member list. Otherwise
	// ID, Role and Joined of every member are unknown.
	Listed bool
	// ClusterID is the cluster ID in the members' answers; 0 if none answers.
	ClusterID uint64
	// Orphans are the StatefulSets and pods that an earlier cluster of the name left running,
	// e.g. after kubectl delete --cascade=orphan. While any exist, this cluster creates nothing.
	Orphans []string
	// Earlier reports whether StatefulSets or pods of an earlier cluster of the name still
	// exist: Kubernetes is about to delete or to orphan them.
	Earlier bool
	// OldVolumes are the names of the volume claims that earlier clusters of the name left. This cluster does not use them.
	OldVolumes []string
	// OtherID is the cluster ID in the answers of serving members if it is not the recorded
	// one; otherwise 0.
	OtherID uint64
	// Shared describes which pods answer as one and the same member; empty if none do. Their state is unknown.
	Shared string
	// Divided describes how the member lists of serving members differ; empty if they agree.
	Divided string
	// Unauthorized reports whether etcd's authentication denies the operator changes, and
	// without Listed also the member list. User is the operator's user name in etcd then;
	// empty if it presents no certificate.
	Unauthorized bool
	User         string
	// LegacyKeys reports whether the user's own Secrets have the legacy API's keys.
	LegacyKeys bool
	// UnknownKeys reports that one of the user's own Secrets has the keys of neither API.
	UnknownKeys bool
	// Certificates describes what is wrong with the Secrets for TLS; empty if nothing is.
	Certificates string
	// Trust is a digest of the authorities that members must trust; empty if it is unknown
	// or nothing is encrypted.
	Trust string
	// Revocation is the phase of spec.tls.revokeBefore in the Secrets; empty if it is unknown
	// or nothing is revoked.
	Revocation lifecycle.RevocationPhase
	// Bundles are the digests of each authority's ca.crt, by the names of their Secrets; nil
	// if nothing is revoked.
	Bundles map[string]string
	// Initial are the members that form the cluster, as all bootstrap ConfigMaps list them. It
	// is empty once one of them no longer permits that: the cluster has formed.
	Initial []string
	// NetworkPolicy is the spec.networkPolicy that a step has put into effect, until the status has
	// it; otherwise it may be nil.
	NetworkPolicy *etcdv1.NetworkPolicySpec
	// TornDown reports that DeleteCluster was taken: what is left is for Kubernetes to delete. It is set
	// in previews and simulations only. In a cluster the object then has no finalizer any more, and an
	// empty world shows no more than that others have deleted everything.
	TornDown bool
	// LeftAlarms are the alarms of members that are not in etcd's list.
	LeftAlarms []Alarm
	// Template is the API server's answer to a dry run of the pod of [NextTemplate].
	Template lifecycle.TemplateVerdict
	// Trial is the pod that tries the next template.
	Trial Trial
	// Places are where a new member could run. The driver looks them up if [NeedsPlaces].
	Places []Place
	// Members are all members in etcd's list and all with objects in Kubernetes, in the
	// order of their numbers, unmanaged members last.
	Members []Member
}

// Member is one member, in either system or in both.
type Member struct {
	// Name of the member; of an unmanaged member, its ID in hexadecimal.
	Name string
	// PeerURL is the member's peer URL in etcd's list.
	PeerURL string
	// Unmanaged reports that Governor did not add the member: its peer URL is not one that
	// Governor assigns.
	Unmanaged bool

	// ID, Role and Joined are from etcd's member list. Joined reports that the member has
	// started at least once: the list has its client URLs.
	ID     uint64
	Role   Role
	Joined bool

	Bootstrap BootstrapMode
	// Obstacle is the object that keeps the member from starting.
	Obstacle Obstacle
	Set      Set
	Volume   Volume
	Pod      Pod

	// Health is the member's own answer, and Since the time of its last change.
	Health Health
	Since  time.Time
	// Watched is since when this process of the operator observes that health without a
	// change. Unlike Since it is by the present clock, also after the clock was set, and no
	// other process recorded it.
	Watched time.Time
	// Leads reports that it is the leader and has a quorum.
	Leads bool
	// Index is the last index of its log; 0 for a member that does not answer.
	Index uint64
	// Version is the version that it reports; empty if it does not answer.
	Version string
	// DBSize is the size of its database in bytes.
	DBSize int64
	// Quota is the size at which it refuses writes; 0 if it does not report it, as before 3.6.
	Quota int64
	// OldLog reports that etcd 3.7 may be unable to read its log: see [OldLog].
	OldLog bool
	// Alarms are those that it raised, e.g. NOSPACE.
	Alarms []string

	// Foreign reports that the member answers for another cluster, while a quorum of the recorded
	// one answers: its volume has the data of another cluster.
	Foreign bool

	// Silence is why a member that does not answer is unreachable: its node is not ready,
	// deleted, or accepts no connection; empty if the reason is unknown.
	Silence string

	// Maintenance is the node in maintenance that the member runs on, or that has its
	// volume; empty if there is none. The driver does not look it up for healthy members.
	Maintenance string
	// Returned is when the end of the last maintenance was observed; zero if there was none
	// since the member was healthy. The member's time to answer begins then.
	Returned time.Time
	// MaintenanceBy is the policy that names the node; empty if it is only cordoned.
	MaintenanceBy string

	// Refused reports that a handshake between the member and the operator failed because of
	// a certificate. PeersRefused and PeersAccepted report the same for the current
	// certificates of its peers. None is set if another reason keeps the member silent.
	Refused, PeersRefused, PeersAccepted bool

	// Renewed reports that the member presents the certificates of its Secrets on both ports.
	// The driver checks it only while certificates of a revoked authority are replaced.
	Renewed bool

	// Restarting is set only in worlds during a planned restart, Crossing during the restart
	// that moves the quorum from one authority to another.
	Restarting, Crossing bool
}

// Role is a member's role in etcd's list.
type Role string

// Roles. Outside means that the member is not in the list.
const (
	Outside Role = ""
	Learner Role = "Learner"
	Voter   Role = "Voter"
)

// BootstrapMode is what a member without data does when it starts.
type BootstrapMode string

// BootstrapDisabled is the zero value: a member without data must not start.
const (
	BootstrapDisabled BootstrapMode = ""
	BootstrapCluster  BootstrapMode = "Bootstrap"
	BootstrapJoin     BootstrapMode = "Join"
)

// Health is a member's own report of its health.
type Health string

// A healthy member has just answered a linearizable read. An unhealthy member answers, but
// fails that read. The health of a member that does not answer is unknown.
const (
	Unknown   Health = ""
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
)

// Exposure reports whether the client Service selects a member. The disruption budget counts
// only exposed members.
type Exposure string

// A joining member is hidden until it has answered as a voter. An older operator, which exposed
// all members, created those without a label.
const (
	Unlabelled Exposure = ""
	Hidden     Exposure = "false"
	Exposed    Exposure = "true"
)

// Set is a member's StatefulSet.
type Set struct {
	Exists bool
	// Revision, Version and Exposure are those of its template.
	Revision, Version string
	Exposure          Exposure
	Snapshots         Snapshots
	// Edited names the fields in which the StatefulSet differs from its declaration,
	// e.g. spec.replicas after kubectl scale; empty if there are none. Fields that others added
	// count only if the pod cannot run.
	Edited string
	// Harmless names the fields that differ from the declaration, and on which neither the
	// member's service nor its data depends, e.g. an annotation of its pods.
	Harmless []string
	// Problem is the API server's error for the creation of its pod; empty if there is none.
	Problem string
}

// Volume is a member's claim. With Ephemeral and Memory storage it is the pod's own volume, and
// exists as long as the StatefulSet.
type Volume struct {
	Exists bool
	// Terminating reports that the claim is being deleted. Kubernetes keeps it, and with it the
	// data, as long as a pod uses it (KEP-499, storage object in use protection).
	Terminating bool
	// Unbound reports that the claim's PersistentVolume no longer exists (phase Lost). The pod that has
	// the volume mounted keeps the data, and no other pod can use it.
	Unbound bool
	// Earlier reports that the pod has the volume of an earlier claim mounted: a user deleted that claim and its
	// finalizer under the pod, and perhaps created another one of the name, which is the user's. The pod keeps the
	// data, and no other pod can use it.
	Earlier bool
	// Restored reports that a user created the claim, for instance from a backup: it is newer than the
	// member's StatefulSet, before which Governor creates the claim. Governor uses it, and neither owns
	// nor deletes it.
	Restored bool
	// Stripped reports that the claim lacks labels by which Governor finds it.
	Stripped bool
	// Owned reports that Kubernetes deletes the claim with the cluster.
	Owned bool
	// Size is the requested size in bytes, and Capacity the real one; 0 if it is unknown.
	Size, Capacity int64
	// Version is the last version that was about to use it: the data may be of that version.
	// It is written on the claim before the StatefulSet gets it, so it survives the latter.
	Version string
	// Pending reports that the claim has no volume yet. Kubernetes grows bound claims only.
	Pending bool
	// AwaitsPod reports that the pod is older than the last growth of the volume.
	AwaitsPod bool
	// Problem is why it cannot be used or grown; empty if there is no known problem.
	Problem string
	// NodeLost is the node that the volume is bound to, if that node no longer exists.
	NodeLost string
	// Spoiled reports that the member last terminated because its data is missing or
	// unreadable, and is not ready since. Lost is false while Kubernetes restarts it.
	Spoiled bool
	// Removing reports that Governor is removing the member: the claim goes with it.
	Removing bool
	// Lost reports that the data of a member that had data is missing or unreadable.
	Lost bool
	// Detail is the evidence for that.
	Detail string
}

// Pod is a member's pod.
type Pod struct {
	Exists bool
	// Ready is the kubelet's result: etcd answered its linearizable read.
	Ready bool
	// Leaving reports that it is being deleted; Ended that it has terminated for good.
	Leaving, Ended bool
	// HeldBy names the finalizers of others that keep a deleted pod; empty if there are none.
	HeldBy string
	// Stale reports that it was created from another template than the current one, and that
	// it is not being deleted.
	Stale bool
	// Stripped reports that it has lost the labels by which its StatefulSet, the Services
	// and the operator select it.
	Stripped bool
	// Revision and Version are those of the template it was created from.
	Revision, Version string
	Snapshots         Snapshots
	// Exposure is the current value of its label.
	Exposure Exposure
	// Node is where it runs, and Zone the node's zone; empty if unknown.
	Node, Zone string
	// Trouble is the problem that keeps etcd from running, and Detail the message of Kubernetes
	// or etcd.
	Trouble lifecycle.PodProblem
	Detail  string
	// OtherContainer is the problem of a container that others added to the pod, e.g. a sidecar.
	// The pod is not ready; etcd runs unless there is also Trouble.
	OtherContainer string
	// LastWords is the message with which etcd last terminated, while the pod is not ready.
	LastWords string
	// Since is when its present state began: not ready, or this problem.
	Since time.Time
}
