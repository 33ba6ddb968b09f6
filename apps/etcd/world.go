package etcd

import (
	"slices"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// World is one cluster as observed.
type World struct {
	// Leaving says that the object is being deleted: promises about keeping data
	// and quorum end with it.
	Leaving bool
	// Listed says that etcd's member list is known from a member that has a quorum
	// behind it. Otherwise ID, Role and Joined of every member are not known.
	Listed bool
	// ClusterID is the ID that the members answer with; 0 if none answers.
	ClusterID uint64
	// Orphans are the StatefulSets and pods that an earlier cluster of the name left running,
	// e.g. by kubectl delete --cascade=orphan. While there are any, this cluster makes nothing.
	Orphans []string
	// Earlier says that StatefulSets or pods are still there whose owner is an earlier cluster
	// of the name: Kubernetes is about to delete or to orphan them.
	Earlier bool
	// OtherID is the cluster ID that members who serve answer with instead of the remembered
	// one; 0 if there is none.
	OtherID uint64
	// Divided says how members that serve differ about who is a member; empty if they agree.
	Divided string
	// Unauthorized says that etcd's authentication refuses the operator: without Listed also
	// the member list. User is who the operator is to etcd then; empty if it shows no
	// certificate.
	Unauthorized bool
	User         string
	// LegacyKeys says that the user's own Secrets have the legacy API's keys.
	LegacyKeys bool
	// Certificates is what is wrong with the Secrets for TLS; empty if nothing.
	Certificates string
	// Trust is a digest of the authorities that members must trust; empty if it is
	// not known or nothing is encrypted.
	Trust string
	// Revocation is how far spec.tls.revokeBefore has come in the Secrets; empty if that is
	// not known or nothing is revoked.
	Revocation lifecycle.RevocationPhase
	// Bundles are the digests of each authority's ca.crt, by the names of their Secrets; nil
	// if nothing is revoked.
	Bundles map[string]string
	// Places are where a new member could run. They are looked up only where [NeedsPlaces].
	Places []Place
	// Members are all that etcd lists and all that Kubernetes has parts of, in the
	// order of their numbers, strangers last.
	Members []Member
}

// Member is one member, in either system or in both.
type Member struct {
	// Name of the member; of a stranger, its ID in hexadecimal.
	Name string
	// PeerURL is where etcd's list says that other members reach it.
	PeerURL string
	// Unmanaged says that it is not one of ours: its peer URL is none that we give.
	Unmanaged bool

	// ID, Role and Joined are etcd's member list. Joined says that it has started
	// at least once: the list has its client URLs.
	ID     uint64
	Role   Role
	Joined bool

	Bootstrap BootstrapMode
	// Obstacle is why the member cannot be started.
	Obstacle Obstacle
	Set      Set
	Volume   Volume
	Pod      Pod

	// Health is what the member itself answers, Since since when.
	Health Health
	Since  time.Time
	// Leads says that it is the leader and has a quorum behind it.
	Leads bool
	// Index is how far its log has come; a member that does not answer has 0.
	Index uint64
	// Version is what it says it runs; empty if it does not answer.
	Version string
	// DBSize is the size of its database in bytes.
	DBSize int64
	// Quota is the size at which it refuses writes; 0 if it does not say, as before 3.6.
	Quota int64
	// OldLog says that etcd 3.7 may not be able to read its log: see [OldLog].
	OldLog bool
	// Alarms are those that it raised, e.g. NOSPACE.
	Alarms []string

	// Silence is why a member that does not answer is out of reach: its node is not ready or
	// gone, or takes up no connection; empty if nothing is known.
	Silence string

	// Maintenance is the node in maintenance that the member runs on, or that has its
	// volume; empty if there is none. It is not looked up for members that are healthy.
	Maintenance string
	// Returned is when that node was found uncordoned; zero if it was not cordoned before.
	// The member's time to answer begins then.
	Returned time.Time
	// MaintenanceBy says which policy names the node; empty if it is only cordoned.
	MaintenanceBy string

	// Refused says that the member and the operator refuse each other's certificates, by
	// what a handshake showed; PeersRefused and PeersAccepted how it and the present
	// certificates of its peers get on. None is set where another reason keeps it silent.
	Refused, PeersRefused, PeersAccepted bool

	// Renewed says that the member shows the certificates of its Secrets on both ports. It is
	// looked up only while certificates of a revoked authority are replaced.
	Renewed bool

	// Restarting is set only in worlds during a planned restart, Crossing during the one
	// that moves the quorum from one authority to another.
	Restarting, Crossing bool
}

// Role is a member's place in etcd's list.
type Role string

// The places.
const (
	Outside Role = ""
	Learner Role = "Learner"
	Voter   Role = "Voter"
)

// BootstrapMode is what a member without data is told to do when it starts.
type BootstrapMode string

// BootstrapDisabled is the zero value: a member without data must not start.
const (
	BootstrapDisabled BootstrapMode = ""
	BootstrapCluster  BootstrapMode = "Bootstrap"
	BootstrapJoin     BootstrapMode = "Join"
)

// Health is what a member says about itself.
type Health string

// A healthy member has just answered a linearizable read. An unhealthy one answers,
// but cannot. Of one that does not answer nothing is known.
const (
	Unknown   Health = ""
	Healthy   Health = "Healthy"
	Unhealthy Health = "Unhealthy"
)

// Exposure says whether clients are led to a member: by the client Service, and by the
// disruption budget, which counts nobody else.
type Exposure string

// A member that joins is hidden until it has answered as a voter. Unlabelled ones are of
// an operator that led clients to all.
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
	// Problem is why Kubernetes makes no pod of it, in the API server's words; empty if
	// nothing is known.
	Problem string
}

// Volume is a member's claim; with Ephemeral and Memory storage it is the pod's own
// and exists as long as the StatefulSet.
type Volume struct {
	Exists bool
	// Terminating says that the claim is being deleted. Kubernetes keeps it, and with it the
	// data, as long as a pod uses it (KEP-499, storage object in use protection).
	Terminating bool
	// Stripped says that the claim lacks labels by which Governor finds it.
	Stripped bool
	// Owned says that Kubernetes deletes the claim with the cluster.
	Owned bool
	// Size is what the claim asks for, in bytes.
	Size int64
	// Version is the last that was about to run on it: its data may be of it. It is
	// written on the claim before a StatefulSet gets it, and so survives that.
	Version string
	// Pending says that the claim has no volume yet. Kubernetes grows bound claims only.
	Pending bool
	// AwaitsPod says that the pod is older than the last growth of the volume.
	AwaitsPod bool
	// Problem is why it cannot be had or grown; empty if nothing is known.
	Problem string
	// Spoiled says that the member last ended because its data is gone or unreadable, and
	// that it is not ready since. Lost is false while Kubernetes tries again.
	Spoiled bool
	// Lost says that the data of a member that had some is gone or unreadable.
	Lost bool
	// Detail is the evidence for that.
	Detail string
}

// Pod is a member's pod.
type Pod struct {
	Exists bool
	// Ready is the kubelet's word: etcd answered its linearizable read.
	Ready bool
	// Leaving says that it is being deleted; Ended that it ran and will not again.
	Leaving, Ended bool
	// Stale says that it was made from another template than the StatefulSet has now.
	Stale bool
	// Stripped says that it has lost the labels by which its StatefulSet, the Services
	// and the operator select it.
	Stripped bool
	// Revision and Version are those of the template it was made from.
	Revision, Version string
	Snapshots         Snapshots
	// Exposure is what its label says now.
	Exposure Exposure
	// Node it runs on, and the zone of that; empty if not known.
	Node, Zone string
	// Trouble is what hinders it, Detail in Kubernetes' or etcd's own words.
	Trouble lifecycle.PodProblem
	Detail  string
	// LastWords are those with which etcd last ended, while the pod is not ready.
	LastWords string
	// Since is when it began to be as it is: not ready, or in this trouble.
	Since time.Time
}

// lag is how far behind the leader's log a member may be and still count as
// serving: it bounds what a member that is wrong about itself can do.
const lag = 5000

func voter(m Member) bool        { return m.Role == Voter }
func learner(m Member) bool      { return m.Role == Learner }
func listed(m Member) bool       { return m.Role != Outside }
func ours(m Member) bool         { return !m.Unmanaged }
func inKube(m Member) bool       { return m.Set.Exists || m.Volume.Exists }
func mayBootstrap(m Member) bool { return m.Bootstrap != BootstrapDisabled }
func unmanaged(m Member) bool    { return m.Unmanaged && listed(m) }

// dataLost has lost its data. A StatefulSet is made after its volume, so one without
// a volume has lost it; the volume is never made again under the same name. No other
// pod can use a claim that is being deleted.
func dataLost(m Member) bool {
	has := m.Volume.Exists && (!m.Volume.Terminating || holdsVolume(m.Pod))
	return m.Volume.Lost || ours(m) && !has && (m.Joined || m.Set.Exists)
}

// claimTerminating members have their data as long as their present pod lasts: they count and
// serve, and are replaced before they go.
func claimTerminating(m Member) bool { return ours(m) && m.Volume.Terminating && !dataLost(m) }

// holdsVolume says that the pod keeps a deleted claim alive. A pod without a node does
// not (pkg/controller/volume/pvcprotection, podUsesPVC).
func holdsVolume(p Pod) bool { return p.Exists && !p.Ended && p.Node != "" }

// serving needs two witnesses: the member's own answer, and the kubelet's probe. A
// stranger has no pod that we know of.
func (w World) serving(m Member) bool {
	return m.Health == Healthy && !dataLost(m) && m.Index+lag >= w.index() &&
		(m.Unmanaged || m.Pod.Ready && !m.Pod.Leaving)
}

// index is the leader's, else the furthest.
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

// find returns the first member that is so.
func (w World) find(is func(Member) bool) (Member, bool) {
	if i := slices.IndexFunc(w.Members, is); i >= 0 {
		return w.Members[i], true
	}
	return Member{}, false
}

// last returns the last member that is so: the newest.
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

// unexposed members have a pod that clients are not led to, now or when it is made anew.
func unexposed(m Member) bool {
	return m.Set.Exists && m.Set.Exposure != Exposed || m.Pod.Exists && !m.Pod.Leaving && m.Pod.Exposure != Exposed
}

func (w World) servingVoter(m Member) bool { return voter(m) && w.serving(m) }

// quorum is how many voters must agree.
func (w World) quorum() int { return w.count(voter)/2 + 1 }

// missing is how many voters are lacking for a quorum. In a cluster of one or two
// there is nothing to spare, so a planned restart that keeps the data does not
// count: its user has chosen to live with the interruption. Nor does the restart without
// which the members would refuse each other for ever, see distrusted.
func (w World) missing() int {
	present := w.count(func(m Member) bool {
		return w.servingVoter(m) || voter(m) && (w.count(voter) <= 2 && m.Restarting || m.Crossing)
	})
	if w.count(voter) == 0 {
		return 2 // worse than one voter that is down: it can come back
	}
	return max(0, w.quorum()-present)
}

// change returns the world with the named member changed, and without those that
// neither system knows any more.
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

// place is where a new member goes: after our own, before strangers.
func (w World) place(name string) int {
	return w.count(func(m Member) bool { return !m.Unmanaged && Number(m.Name) < Number(name) })
}
