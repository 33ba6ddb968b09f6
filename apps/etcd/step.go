package etcd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Steps. Each changes only one of the two systems, so the step's own rule finishes a step that
// a crash interrupted.
const (
	// FormCluster starts all first members at once: none has data yet, and they need each
	// other. Args: members, and those of StartMember.
	FormCluster = "FormCluster"
	// StartMember creates the member's volume, if it does not exist, and then its
	// StatefulSet. Args: version, revision, exposed, size of a new volume.
	StartMember = "StartMember"
	// AddLearner and AddVoter add a member to etcd's list. Args: peerURL.
	AddLearner = "AddLearner"
	AddVoter   = "AddVoter"
	// Promote makes a learner a voter. Args: id.
	Promote = "Promote"
	// AddToService adds the member to the client Service, by a label on its StatefulSet's
	// template and on its pod.
	AddToService = "AddToService"
	// RewriteMemberEntry writes the member's entry in etcd's list unchanged, which adds an entry
	// to the log. Args: id, peerURL.
	RewriteMemberEntry = "RewriteMemberEntry"
	// MoveLeader transfers the leadership to the target. Args: id, from.
	MoveLeader = "MoveLeader"
	// RemoveMember removes a member from etcd's list. Args: id.
	RemoveMember = "RemoveMember"
	// DeleteMember deletes the member's StatefulSet and its volume.
	DeleteMember = "DeleteMember"
	// SetRetention makes the cluster the owner of its volumes, or removes that owner. Args:
	// retention.
	SetRetention = "SetRetention"
	// DeleteCluster does SetRetention for members that have a StatefulSet. Kubernetes
	// deletes what has an owner. Args: retention.
	DeleteCluster = "DeleteCluster"
	// Restart writes the version on the member's claim, gives its StatefulSet the new
	// template and deletes the pod that was created from another one. Args: version,
	// revision, exposed, budget.
	Restart = "Restart"
	// Disarm clears the alarm NOSPACE of the member. Args: id.
	Disarm = "Disarm"
	// GrowVolume requests more storage. Args: size in bytes.
	GrowVolume = "GrowVolume"
	// RestoreSet applies the member's StatefulSet again after a manual edit. Args:
	// version, revision, exposed.
	RestoreSet = "RestoreStatefulSet"
	// LabelPod restores the labels of the StatefulSet's template on the member's pod.
	LabelPod = "LabelPod"
	// LabelVolume restores the labels of the member's claim.
	LabelVolume = "LabelVolume"
	// UpdatePeerURL writes the member's peer URL in etcd's list. Args: id, peerURL.
	UpdatePeerURL = "UpdatePeerURL"
)

// Waits.
const (
	// Formed: the cluster exists.
	Formed = "Formed"
	// Serving: the member answers linearizable reads.
	Serving = "Serving"
	// CaughtUp: the learner's log is nearly as long as the leader's.
	CaughtUp = "CaughtUp"
	// QuorumBack: enough members serve to form a quorum again.
	QuorumBack = "QuorumBack"
	// BootstrapConfigWritten: the member's bootstrap ConfigMap has the declared mode. Args: bootstrap.
	BootstrapConfigWritten = "BootstrapConfigWritten"
	// SnapshotTaken: the members' snapshots cover what a release before 3.6 wrote.
	SnapshotTaken = "SnapshotTaken"
	// AuthoritySigns: the authority that follows a revoked one signs certificates.
	AuthoritySigns = "AuthoritySigns"
	// AuthorityDropped: no ca.crt has the revoked authority.
	AuthorityDropped = "AuthorityDropped"
)

// Keys of Args. OverBudget is the value of ArgBudget for deleting a pod regardless of the
// disruption budget.
const (
	ArgMembers   = "members"
	ArgVersion   = "version"
	ArgRevision  = "revision"
	ArgID        = "id"
	ArgFrom      = "from"
	ArgPeerURL   = "peerURL"
	ArgSize      = "size"
	ArgBootstrap = "bootstrap"
	ArgExposed   = "exposed"
	ArgBudget    = "budget"
	ArgRetention = "retention"
	OverBudget   = "over"
	// ArgSnapshots is absent if the member uses the usual snapshot count.
	ArgSnapshots = "snapshots"
)

func hex(id uint64) string { return strconv.FormatUint(id, 16) }

// step sets the fields that all steps have. The message states the reason.
func step(name string, m Member, reason, format string, args ...any) lifecycle.Step {
	return lifecycle.Step{
		Name: name, Target: m.Name, Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentChange, Cause: lifecycle.CauseSpecChange,
		Reason: reason, Message: fmt.Sprintf(format, args...), Args: map[string]string{},
	}
}

// repair marks the step as one that restores what a fault removed.
func repair(s lifecycle.Step) lifecycle.Step {
	s.Intent, s.Cause = lifecycle.IntentRepair, lifecycle.CauseFault
	return s
}

func class(s lifecycle.Step, c lifecycle.Class) lifecycle.Step {
	s.Class = c
	return s
}

func with(s lifecycle.Step, key, value string) lifecycle.Step {
	s.Args[key] = value
	return s
}

// start includes the size of a new volume, unless the member has a volume.
func start(want desired, m Member, v version, reason, format string, args ...any) lifecycle.Step {
	s := step(StartMember, m, reason, format, args...)
	if size := want.Spec.Storage.Size; size != nil && !Volatile(want.EtcdCluster) && !m.Volume.Exists {
		s = with(s, ArgSize, strconv.FormatInt(size.Value(), 10))
	}
	if !Volatile(want.EtcdCluster) && !Retains(want.EtcdCluster) && !m.Volume.Exists {
		s = with(s, ArgRetention, string(etcdv1.Delete))
	}
	return setTemplate(s, m, v, want)
}

// setTemplate records the inputs of the member's pods.
func setTemplate(s lifecycle.Step, m Member, v version, want desired) lifecycle.Step {
	if often := want.snapshots(v); often != Usual {
		s = with(s, ArgSnapshots, string(often))
	}
	return with(with(with(s, ArgVersion, v.String()), ArgRevision, want.revision), ArgExposed, string(exposure(m)))
}

// exposure stays unchanged. A voter that has started and lost its StatefulSet served before. All
// other members are hidden until they serve, including those that may be learners.
func exposure(m Member) Exposure {
	switch {
	case m.Set.Exposure != Unlabelled:
		return m.Set.Exposure
	case voter(m) && m.Joined:
		return Exposed
	}
	return Hidden
}

// formCluster starts the first members that have not started yet.
func formCluster(want desired, names []string) lifecycle.Step {
	s := start(want, Member{Name: want.Name}, want.next, "Bootstrapping", "%s start the cluster together.", strings.Join(names, ", "))
	s.Name = FormCluster
	s = with(s, ArgExposed, string(Exposed)) // there are no other members
	return with(s, ArgMembers, strings.Join(names, ","))
}

// Each returns the single-member steps that the step consists of.
func Each(s lifecycle.Step) []lifecycle.Step {
	if s.Name != FormCluster {
		return []lifecycle.Step{s}
	}
	var each []lifecycle.Step
	for name := range strings.SplitSeq(s.Args[ArgMembers], ",") {
		one := s
		one.Name, one.Target = StartMember, name
		each = append(each, one)
	}
	return each
}

// remove is destructive for a voter: its copy of the data can never serve again.
func remove(m Member, reason, format string, args ...any) lifecycle.Step {
	s := with(step(RemoveMember, m, reason, format, args...), ArgID, hex(m.ID))
	if voter(m) {
		return class(s, lifecycle.ClassDestructive)
	}
	return class(s, lifecycle.ClassDisruptive)
}

func deleteMember(m Member, reason, format string, args ...any) lifecycle.Step {
	return class(step(DeleteMember, m, reason, format, args...), lifecycle.ClassDestructive)
}

func restart(want desired, m Member, v version, reason, format string, args ...any) lifecycle.Step {
	return setTemplate(class(step(Restart, m, reason, format, args...), lifecycle.ClassDisruptive), m, v, want)
}

func moveLeader(from, to Member, reason, format string, args ...any) lifecycle.Step {
	s := class(step(MoveLeader, to, reason, format, args...), lifecycle.ClassDisruptive)
	return with(with(s, ArgID, hex(to.ID)), ArgFrom, hex(from.ID))
}

// await waits for the member to reach a state.
func await(name string, m Member, since time.Time, reason, format string, args ...any) lifecycle.Decision {
	return lifecycle.WaitFor(step(name, m, reason, format, args...), since)
}
