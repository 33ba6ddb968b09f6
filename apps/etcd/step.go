package etcd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Steps. Each touches one of the two systems only, so a crash within a step leaves
// nothing that its own rule does not finish.
const (
	// FormCluster starts the first members, all at once: none has data yet, and they need
	// each other. Args: members, and those of StartMember.
	FormCluster = "FormCluster"
	// StartMember makes the member's volume, if it is not there, and then its
	// StatefulSet. Args: version, revision, exposed, size of a volume that is made.
	StartMember = "StartMember"
	// AddLearner and AddVoter add a member to etcd's list. Args: peerURL.
	AddLearner = "AddLearner"
	AddVoter   = "AddVoter"
	// Promote makes a learner a voter. Args: id.
	Promote = "Promote"
	// AddToService leads clients to the member, by a label on its StatefulSet's template and on
	// its pod.
	AddToService = "AddToService"
	// RewriteMemberEntry writes the member's entry in etcd's list as it is, so that there is one more
	// entry in the log. Args: id, peerURL.
	RewriteMemberEntry = "RewriteMemberEntry"
	// MoveLeader gives the leadership to the target. Args: id, from.
	MoveLeader = "MoveLeader"
	// RemoveMember takes a member from etcd's list. Args: id.
	RemoveMember = "RemoveMember"
	// DeleteMember deletes the member's StatefulSet and its volume.
	DeleteMember = "DeleteMember"
	// SetRetention makes the cluster the owner of its volumes, or ends that. Args:
	// retention.
	SetRetention = "SetRetention"
	// DeleteCluster does SetRetention for members that have a StatefulSet. Kubernetes
	// deletes what has an owner. Args: retention.
	DeleteCluster = "DeleteCluster"
	// Restart writes the version on the member's claim, gives its StatefulSet the new
	// template and ends the pod that was made from another. Args: version,
	// revision, exposed, budget.
	Restart = "Restart"
	// Disarm ends the alarm NOSPACE of the member. Args: id.
	Disarm = "Disarm"
	// GrowVolume asks for more storage. Args: size in bytes.
	GrowVolume = "GrowVolume"
	// RestoreSet applies the member's StatefulSet again after somebody edited it. Args:
	// version, revision, exposed.
	RestoreSet = "RestoreStatefulSet"
	// LabelPod gives the member's pod the labels of its StatefulSet's template again.
	LabelPod = "LabelPod"
	// LabelVolume gives the member's claim its labels again.
	LabelVolume = "LabelVolume"
	// UpdatePeerURL writes the member's peer URL in etcd's list. Args: id, peerURL.
	UpdatePeerURL = "UpdatePeerURL"
)

// What is waited for.
const (
	// Formed: the cluster has come into being.
	Formed = "Formed"
	// Serving: the member answers linearizable reads.
	Serving = "Serving"
	// CaughtUp: the learner's log is nearly as long as the leader's.
	CaughtUp = "CaughtUp"
	// QuorumBack: so many members came back that they agree again.
	QuorumBack = "QuorumBack"
	// BootstrapConfigWritten: the member's door stands as it should. Args: door.
	BootstrapConfigWritten = "BootstrapConfigWritten"
	// SnapshotTaken: the members' snapshots cover what a release before 3.6 wrote.
	SnapshotTaken = "SnapshotTaken"
	// AuthoritySigns: the authority that follows a revoked one signs certificates.
	AuthoritySigns = "AuthoritySigns"
	// AuthorityDropped: no ca.crt has the revoked authority.
	AuthorityDropped = "AuthorityDropped"
)

// Keys of Args. OverBudget is the value of ArgBudget that ends a pod without asking the
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
	// ArgSnapshots is absent where the member writes snapshots as usual.
	ArgSnapshots = "snapshots"
)

func hex(id uint64) string { return strconv.FormatUint(id, 16) }

// step fills in what all steps have. The message says why.
func step(name string, m Member, reason, format string, args ...any) lifecycle.Step {
	return lifecycle.Step{
		Name: name, Target: m.Name, Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentChange, Cause: lifecycle.CauseSpecChange,
		Reason: reason, Message: fmt.Sprintf(format, args...), Args: map[string]string{},
	}
}

// repair marks the step as one that brings back what the world lost.
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

// start makes a volume of the wanted size, unless the member has one.
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

// setTemplate says what the member's pods are made from.
func setTemplate(s lifecycle.Step, m Member, v version, want desired) lifecycle.Step {
	if often := want.snapshots(v); often != Usual {
		s = with(s, ArgSnapshots, string(often))
	}
	return with(with(with(s, ArgVersion, v.String()), ArgRevision, want.revision), ArgExposed, string(exposure(m)))
}

// exposure is as it was. Who has had a vote and lost its StatefulSet served before; all
// others are hidden until they serve, and so is who may be a learner, for nobody can tell.
func exposure(m Member) Exposure {
	switch {
	case m.Set.Exposure != Unlabelled:
		return m.Set.Exposure
	case voter(m) && m.Joined:
		return Exposed
	}
	return Hidden
}

// formCluster starts those of the first members that have not been started.
func formCluster(want desired, names []string) lifecycle.Step {
	s := start(want, Member{Name: want.Name}, want.next, "Bootstrapping", "%s begin the cluster together.", strings.Join(names, ", "))
	s.Name = FormCluster
	s = with(s, ArgExposed, string(Exposed)) // nobody else is there
	return with(s, ArgMembers, strings.Join(names, ","))
}

// Each returns the steps on single members that the step consists of.
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

// await is a wait for something about the member.
func await(name string, m Member, since time.Time, reason, format string, args ...any) lifecycle.Decision {
	return lifecycle.WaitFor(step(name, m, reason, format, args...), since)
}
