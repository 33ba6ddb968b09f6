package etcd

import (
	"fmt"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Steps. Each changes only one of the two systems, so the step's own rule finishes a step that
// a crash interrupted.
const (
	// FormCluster starts all first members at once: none has data yet, and they need each
	// other.
	FormCluster = "FormCluster"
	// StartMember creates the member's volume, if it does not exist, and then its
	// StatefulSet.
	StartMember = "StartMember"
	// AddLearner and AddVoter add a member to etcd's list.
	AddLearner = "AddLearner"
	AddVoter   = "AddVoter"
	// Promote makes a learner a voter.
	Promote = "Promote"
	// AddToService adds the member to the client Service, by a label on its StatefulSet's
	// template and on its pod.
	AddToService = "AddToService"
	// RemoveFromService removes the member from the client Service, by the same label.
	RemoveFromService = "RemoveFromService"
	// RewriteMemberEntry writes the member's entry in etcd's list unchanged, which adds an entry
	// to the log.
	RewriteMemberEntry = "RewriteMemberEntry"
	// MoveLeader transfers the leadership to the target.
	MoveLeader = "MoveLeader"
	// RemoveMember removes a member from etcd's list.
	RemoveMember = "RemoveMember"
	// DeleteMember deletes the member's StatefulSet, its pod and, unless it stays, its volume.
	DeleteMember = "DeleteMember"
	// SetRetention makes the cluster the owner of its volumes, or removes that owner.
	SetRetention = "SetRetention"
	// DeleteCluster does SetRetention for members that have a StatefulSet. Kubernetes
	// deletes what has an owner.
	DeleteCluster = "DeleteCluster"
	// Restart writes the version on the member's claim, gives its StatefulSet the new
	// template and deletes the pod that was created from another one.
	Restart = "Restart"
	// StartTrial creates the trial pod with the template that Restart gives to the member, and
	// DeleteTrial deletes it.
	StartTrial  = "StartTrial"
	DeleteTrial = "DeleteTrial"
	// Disarm clears an alarm of the member, or of a removed one.
	Disarm = "Disarm"
	// GrowVolume requests more storage.
	GrowVolume = "GrowVolume"
	// RestoreStatefulSet applies the member's StatefulSet again after a manual edit.
	RestoreStatefulSet = "RestoreStatefulSet"
	// LabelPod restores the labels of the StatefulSet's template on the member's pod.
	LabelPod = "LabelPod"
	// LabelVolume restores the labels of the member's claim.
	LabelVolume = "LabelVolume"
	// KeepVolume removes the mark of a removal from the member's claim.
	KeepVolume = "KeepVolume"
	// ConfigureNetworkPolicy puts spec.networkPolicy into effect.
	ConfigureNetworkPolicy = "ConfigureNetworkPolicy"
	// UpdatePeerURL writes the member's peer URL in etcd's list.
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
	// BootstrapConfigWritten: the member's bootstrap ConfigMap has the declared mode.
	BootstrapConfigWritten = "BootstrapConfigWritten"
	// TrialPassed: the trial pod has shown that the image can be pulled, and that etcd knows its flags.
	TrialPassed = "TrialPassed"
	// SnapshotTaken: the members' snapshots cover what a release before 3.6 wrote.
	SnapshotTaken = "SnapshotTaken"
	// AuthoritySigns: the authority that follows a revoked one signs certificates.
	AuthoritySigns = "AuthoritySigns"
	// AuthorityDropped: no ca.crt has the revoked authority.
	AuthorityDropped = "AuthorityDropped"
)

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

// revert is a repair of what a user or another controller changed.
func revert(s lifecycle.Step) lifecycle.Step {
	s.Intent, s.Cause = lifecycle.IntentRepair, lifecycle.CauseDrift
	return s
}

func class(s lifecycle.Step, c lifecycle.Class) lifecycle.Step {
	s.Class = c
	return s
}

// start has the size and the retention of a new volume, unless the member has a volume.
func start(want desired, m Member, v version, reason, format string, args ...any) lifecycle.Step {
	return step(StartMember, m, reason, format, args...).WithArgs(want.startArgs(m, v))
}

func (g desired) startArgs(m Member, v version) startArgs {
	args := startArgs{templateArgs: g.template(m, v)}
	if Volatile(g.EtcdCluster) || m.Volume.Exists {
		return args
	}
	if size := g.Spec.Storage.Size; size != nil {
		args.Size = size.Value()
	}
	if !Retains(g.EtcdCluster) {
		args.Retention = etcdv1.RetentionDelete
	}
	return args
}

// template are the inputs of the member's next pod.
func (g desired) template(m Member, v version) templateArgs {
	return templateArgs{Version: v.String(), Revision: g.revision, Exposed: exposure(m), Snapshots: g.snapshots(v)}
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
func formCluster(want desired, members []string) lifecycle.Step {
	m := Member{Name: want.Name}
	args := formArgs{want.startArgs(m, want.next), members}
	args.Exposed = Exposed // there are no other members
	return step(FormCluster, m, "Bootstrapping", "%s start the cluster together.", strings.Join(members, ", ")).WithArgs(args)
}

// Each returns the single-member steps that the step consists of.
func Each(s lifecycle.Step) []lifecycle.Step {
	args, err := lifecycle.ArgsOf[formArgs](s)
	if s.Name != FormCluster || err != nil {
		return []lifecycle.Step{s}
	}
	var each []lifecycle.Step
	for _, name := range args.Members {
		one := s.WithArgs(args.startArgs)
		one.Name, one.Target = StartMember, name
		each = append(each, one)
	}
	return each
}

// remove is destructive for a voter with data: its copy can never serve again. A voter without data
// has no copy, and its removal may let the others have a quorum (sim seed 7191).
func remove(m Member, reason, format string, args ...any) lifecycle.Step {
	a := removeArgs{ID: MemberID(m.ID)}
	// There is no proof that the data of another cluster, or a claim that a user created, may be deleted.
	if ours(m) && m.Volume.Exists && !m.Foreign && !m.Volume.OfUser() {
		a.Retention = etcdv1.RetentionDelete
	}
	s := step(RemoveMember, m, reason, format, args...).WithArgs(a)
	if voter(m) && (!dataLost(m) || m.Health == Healthy) {
		return class(s, lifecycle.ClassDestructive)
	}
	return class(s, lifecycle.ClassDisruptive)
}

func deleteMember(m Member, reason, format string, args ...any) lifecycle.Step {
	return class(step(DeleteMember, m, reason, format, args...), lifecycle.ClassDestructive)
}

func restart(want desired, m Member, v version, reason, format string, args ...any) lifecycle.Step {
	return class(step(Restart, m, reason, format, args...), lifecycle.ClassDisruptive).WithArgs(restartArgs{templateArgs: want.template(m, v)})
}

func moveLeader(from, to Member, reason, format string, args ...any) lifecycle.Step {
	return class(step(MoveLeader, to, reason, format, args...), lifecycle.ClassDisruptive).WithArgs(moveArgs{ID: MemberID(to.ID), From: MemberID(from.ID)})
}

// await waits for the member to reach a state.
func await(name string, m Member, since time.Time, reason, format string, args ...any) lifecycle.Decision {
	return lifecycle.WaitFor(step(name, m, reason, format, args...), since)
}
