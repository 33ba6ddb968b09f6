package etcd

import (
	"slices"
	"time"

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
	// OtherID is the cluster ID in the answers of serving members if it is not the recorded
	// one; otherwise 0.
	OtherID uint64
	// Divided describes how the member lists of serving members differ; empty if they agree.
	Divided string
	// Unauthorized reports whether etcd's authentication denies the operator changes, and
	// without Listed also the member list. User is the operator's user name in etcd then;
	// empty if it presents no certificate.
	Unauthorized bool
	User         string
	// LegacyKeys reports whether the user's own Secrets have the legacy API's keys.
	LegacyKeys bool
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

	// Silence is why a member that does not answer is unreachable: its node is not ready,
	// deleted, or accepts no connection; empty if the reason is unknown.
	Silence string

	// Maintenance is the node in maintenance that the member runs on, or that has its
	// volume; empty if there is none. The driver does not look it up for healthy members.
	Maintenance string
	// Returned is when that node was observed as uncordoned; zero if it was not cordoned
	// before. The member's time to answer begins then.
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
	// e.g. spec.replicas after kubectl scale; empty if there are none.
	Edited string
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
	// Stripped reports that the claim lacks labels by which Governor finds it.
	Stripped bool
	// Owned reports that Kubernetes deletes the claim with the cluster.
	Owned bool
	// Size is the requested size in bytes.
	Size int64
	// Version is the last version that was about to use it: the data may be of that version.
	// It is written on the claim before the StatefulSet gets it, so it survives the latter.
	Version string
	// Pending reports that the claim has no volume yet. Kubernetes grows bound claims only.
	Pending bool
	// AwaitsPod reports that the pod is older than the last growth of the volume.
	AwaitsPod bool
	// Problem is why it cannot be used or grown; empty if there is no known problem.
	Problem string
	// Spoiled reports that the member last terminated because its data is missing or
	// unreadable, and is not ready since. Lost is false while Kubernetes restarts it.
	Spoiled bool
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
	// Stale reports that it was created from another template than the current one.
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
	// Trouble is its problem, and Detail the message of Kubernetes or etcd.
	Trouble lifecycle.PodProblem
	Detail  string
	// LastWords is the message with which etcd last terminated, while the pod is not ready.
	LastWords string
	// Since is when its present state began: not ready, or this problem.
	Since time.Time
}

// maxLag is how far behind the leader's log a serving member may be. It limits the effect of a
// member that reports a wrong health.
const maxLag = 5000

func voter(m Member) bool        { return m.Role == Voter }
func learner(m Member) bool      { return m.Role == Learner }
func listed(m Member) bool       { return m.Role != Outside }
func ours(m Member) bool         { return !m.Unmanaged }
func inKube(m Member) bool       { return m.Set.Exists || m.Volume.Exists }
func mayBootstrap(m Member) bool { return m.Bootstrap != BootstrapDisabled }
func unmanaged(m Member) bool    { return m.Unmanaged && listed(m) }

// dataLost reports that the member has lost its data. A StatefulSet is created after its volume,
// so a StatefulSet without one has lost it; the volume is never created again under the same
// name. No other pod can use a claim that is being deleted.
func dataLost(m Member) bool {
	has := m.Volume.Exists && (!m.Volume.Terminating || holdsVolume(m.Pod))
	return m.Volume.Lost || ours(m) && !has && (m.Joined || m.Set.Exists)
}

// claimTerminating reports that the member has its data only as long as its present pod exists.
// It counts and serves, and is replaced before its pod is deleted.
func claimTerminating(m Member) bool { return ours(m) && m.Volume.Terminating && !dataLost(m) }

// holdsVolume reports whether the pod keeps a deleted claim from disappearing. A pod without a
// node does not (pkg/controller/volume/pvcprotection, podUsesPVC).
func holdsVolume(p Pod) bool { return p.Exists && !p.Ended && p.Node != "" }

// serving requires two independent facts: the member's own answer, and the kubelet's probe. An
// unmanaged member has no known pod.
func (w World) serving(m Member) bool {
	return m.Health == Healthy && !dataLost(m) && m.Index+maxLag >= w.index() &&
		(m.Unmanaged || m.Pod.Ready && !m.Pod.Leaving)
}

// index is the leader's index, otherwise the highest one.
func (w World) index() uint64 {
	var furthest uint64
	for _, m := range w.Members {
		if m.Leads {
			return m.Index
		}
		furthest = max(furthest, m.Index)
	}
	return furthest
}

func (w World) count(is func(Member) bool) int {
	n := 0
	for _, m := range w.Members {
		if is(m) {
			n++
		}
	}
	return n
}

// find returns the first member that satisfies the predicate.
func (w World) find(is func(Member) bool) (Member, bool) {
	if i := slices.IndexFunc(w.Members, is); i >= 0 {
		return w.Members[i], true
	}
	return Member{}, false
}

// last returns the last, and thus newest, member that satisfies the predicate.
func (w World) last(is func(Member) bool) (found Member, ok bool) {
	for _, m := range w.Members {
		if is(m) {
			found, ok = m, true
		}
	}
	return found, ok
}

func (w World) named(name string) (Member, bool) {
	return w.find(func(m Member) bool { return m.Name == name })
}

func (w World) leader() (Member, bool) {
	return w.find(func(m Member) bool { return m.Leads && listed(m) })
}

// unexposed reports that the client Service does not select the member's pod, now or after it is
// recreated.
func unexposed(m Member) bool {
	return m.Set.Exists && m.Set.Exposure != Exposed || m.Pod.Exists && !m.Pod.Leaving && m.Pod.Exposure != Exposed
}

func (w World) servingVoter(m Member) bool { return voter(m) && w.serving(m) }

// quorum is the number of voters that must agree.
func (w World) quorum() int { return w.count(voter)/2 + 1 }

// missing is how many serving voters a quorum lacks. A cluster of one or two has none to spare,
// so a planned restart that keeps the data does not count: its user accepts the interruption.
// Nor does the restart without which the members would refuse each other forever; see
// authorityMismatch.
func (w World) missing() int {
	present := w.count(func(m Member) bool {
		return w.servingVoter(m) || voter(m) && (w.count(voter) <= 2 && m.Restarting || m.Crossing)
	})
	if w.count(voter) == 0 {
		return 2 // worse than one voter that is down: it can come back
	}
	return max(0, w.quorum()-present)
}

// change returns the world with the named member changed, and without members that neither
// system has any more.
func (w World) change(name string, edit func(*Member)) World {
	w.Members = slices.Clone(w.Members)
	i := slices.IndexFunc(w.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		i = w.place(name)
		w.Members = slices.Insert(w.Members, i, Member{Name: name})
	}
	edit(&w.Members[i])
	w.Members = slices.DeleteFunc(w.Members, func(m Member) bool { return !listed(m) && !inKube(m) })
	return w
}

// place is the position of a new member: after the managed members, before unmanaged ones.
func (w World) place(name string) int {
	return w.count(func(m Member) bool { return !m.Unmanaged && Number(m.Name) < Number(name) })
}
