package etcd

import (
	"cmp"
	"slices"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Effect returns the worlds during and after a step or a wait.
func (Planner) Effect(want *etcdv1.EtcdCluster, seen World, s lifecycle.Step) (during, after World) {
	if s.Name == Formed || s.Name == QuorumBack {
		return seen, allServe(seen)
	}
	if s.Name == SnapshotTaken {
		return seen, withSnapshots(seen)
	}
	if s.Name == AuthoritySigns || s.Name == AuthorityDropped {
		return seen, revoked(seen, s)
	}
	if s.Name == StartTrial || s.Name == TrialPassed || s.Name == DeleteTrial {
		return seen, withTrial(seen, s)
	}
	if s.Name == ConfigureNetworkPolicy {
		return seen, withNetworkPolicy(want, seen)
	}
	if s.Name == Disarm {
		return seen, withoutAlarm(seen, s)
	}
	if s.Name == MoveLeader {
		return leads(seen, ""), leads(seen, s.Target)
	}
	if s.Name == FormCluster {
		return seen, withStartedMembers(seen, s)
	}
	if s.Name == SetRetention || s.Name == DeleteCluster {
		after = withOwners(seen, s)
		after.TornDown = s.Name == DeleteCluster
		return seen, after
	}
	if s.Name == RemoveMember {
		seen = withLeftAlarms(seen, s)
	}
	worst, best := effects(seen, s)
	during = seen.change(s.Target, worst)
	if Volatile(want) {
		during = during.change(s.Target, func(m *Member) { m.Restarting = false }) // its data does not return with it
	}
	return during, withLeader(seen.change(s.Target, best))
}

// withOwners sets the owners of volumes as the step does. After DeleteCluster it also removes
// what Kubernetes deletes.
func withOwners(seen World, s lifecycle.Step) World {
	deletes := s.Args[ArgRetention] == string(etcdv1.RetentionDelete)
	for _, m := range seen.Members {
		seen = seen.change(m.Name, func(m *Member) {
			if m.Volume.Owned = m.Volume.Exists && deletes && !m.Volume.OfUser(); s.Name == SetRetention {
				return
			}
			if m.Set, m.Pod = (Set{}), (Pod{}); deletes {
				m.Volume = Volume{}
			}
		})
	}
	return seen
}

func withStartedMembers(seen World, s lifecycle.Step) World {
	for _, one := range Each(s) {
		seen = seen.change(one.Target, func(m *Member) { started(m, one) })
	}
	return seen
}

// withLeader returns the world after an election, if the serving voters can hold one.
func withLeader(w World) World {
	if _, led := w.leader(); led || w.missing() > 0 || !w.Listed {
		return w
	}
	if m, ok := w.find(w.servingVoter); ok {
		return leads(w, m.Name)
	}
	return w
}

// effects are the worst case and the final changes to the target.
func effects(seen World, s lifecycle.Step) (worst, best func(*Member)) {
	same := func(*Member) {}
	switch s.Name {
	case AddLearner, AddVoter:
		return both(func(m *Member) { added(m, s) })
	case Promote:
		return both(promoted)
	case RemoveMember:
		return both(func(m *Member) {
			m.Role, m.ID, m.Joined, m.Leads, m.Alarms = Outside, 0, false, false, nil
			m.Volume.Removing = m.Volume.Removing || s.Args[ArgRetention] == string(etcdv1.RetentionDelete)
		})
	case StartMember:
		return same, func(m *Member) { started(m, s) }
	case DeleteMember:
		return both(func(m *Member) { deletedMember(m, s.Args[ArgRetention] == string(etcdv1.RetentionRetain)) })
	case Restart:
		return func(m *Member) { restarting(m, s) }, func(m *Member) { restarting(m, s); m.Restarting, m.Crossing = false, false }
	case GrowVolume:
		return same, func(m *Member) { grown(m, s) }
	case RestoreStatefulSet:
		return both(func(m *Member) { m.Set = templated(s) })
	case LabelPod:
		return both(func(m *Member) { m.Pod.Stripped, m.Pod.Exposure = false, m.Set.Exposure })
	case KeepVolume:
		return both(func(m *Member) { m.Volume.Removing = false })
	case LabelVolume:
		return both(func(m *Member) { m.Volume.Stripped = false })
	case UpdatePeerURL:
		return both(func(m *Member) { m.PeerURL = s.Args[ArgPeerURL] })
	case RemoveFromService:
		return same, func(m *Member) { m.Set.Exposure, m.Pod.Exposure = Hidden, Hidden }
	case AddToService:
		return same, func(m *Member) { m.Set.Exposure, m.Pod.Exposure = Exposed, Exposed }
	case Serving, CaughtUp, RewriteMemberEntry:
		return same, func(m *Member) { serves(m, seen) }
	case BootstrapConfigWritten:
		return same, func(m *Member) { configured(m, s) }
	}
	return same, same
}

// deletedMember leaves the member's entry in etcd's list, if it has one, and its volume if that is kept.
func deletedMember(m *Member, keepsVolume bool) {
	if m.Set, m.Pod = (Set{}), (Pod{}); !keepsVolume {
		m.Volume = Volume{}
	}
	m.Health, m.Version, m.Index, m.Leads = Unknown, "", 0, false
}

func both(edit func(*Member)) (worst, best func(*Member)) { return edit, edit }

func grown(m *Member, s lifecycle.Step) {
	if args, err := lifecycle.ArgsOf[GrowArgs](s); err == nil {
		m.Volume.Size, m.Volume.Capacity, m.Volume.AwaitsPod = args.Size, 0, m.Pod.Exists
	}
}

func configured(m *Member, s lifecycle.Step) {
	if args, err := lifecycle.ArgsOf[bootstrapArgs](s); err == nil {
		m.Bootstrap = args.Bootstrap
	}
}

func added(m *Member, s lifecycle.Step) {
	m.Role, m.PeerURL, m.Bootstrap = Learner, s.Args[ArgPeerURL], BootstrapJoin
	if s.Name == AddVoter {
		m.Role = Voter
	}
}

func started(m *Member, s lifecycle.Step) {
	args, err := lifecycle.ArgsOf[startArgs](s)
	if err != nil {
		return
	}
	if !m.Volume.Exists {
		m.Volume.Owned = args.Retention == etcdv1.RetentionDelete
	}
	m.Volume.Exists, m.Pod.Exists = true, true
	if args.Size > 0 {
		m.Volume.Size = args.Size
	}
	m.Set = templated(s)
	m.Pod.Version, m.Pod.Revision, m.Pod.Exposure, m.Volume.Version = m.Set.Version, m.Set.Revision, m.Set.Exposure, m.Set.Version
	m.Pod.Snapshots = m.Set.Snapshots
}

func templated(s lifecycle.Step) Set {
	return Set{Exists: true, Version: s.Args[ArgVersion], Revision: s.Args[ArgRevision], Exposure: Exposure(s.Args[ArgExposed]), Snapshots: Snapshots(s.Args[ArgSnapshots])}
}

// withLeftAlarms returns the world in which etcd keeps the alarms of the removed member.
func withLeftAlarms(seen World, s lifecycle.Step) World {
	m, _ := seen.named(s.Target)
	for _, name := range m.Alarms {
		seen.LeftAlarms = append(slices.Clone(seen.LeftAlarms), Alarm{m.ID, name})
	}
	return seen
}

// withoutAlarm returns the world without the alarm that the step disarms. Pods that were not ready
// because of it are ready then.
func withoutAlarm(seen World, s lifecycle.Step) World {
	for _, m := range seen.Members {
		seen = seen.change(m.Name, func(m *Member) { m.Pod.Ready = m.Pod.Ready || seen.serving(*m) })
	}
	seen.LeftAlarms = slices.DeleteFunc(slices.Clone(seen.LeftAlarms), func(a Alarm) bool { return hex(a.ID) == s.Args[ArgID] && a.Name == s.Args[ArgAlarm] })
	for _, m := range seen.Members {
		if hex(m.ID) == s.Args[ArgID] {
			seen = seen.change(m.Name, func(m *Member) {
				m.Alarms = slices.DeleteFunc(slices.Clone(m.Alarms), func(a string) bool { return a == s.Args[ArgAlarm] })
			})
		}
	}
	return seen
}

// withSnapshots returns the world in which members with frequent snapshots have taken one.
func withSnapshots(seen World) World {
	for _, m := range seen.Members {
		seen = seen.change(m.Name, func(m *Member) { m.OldLog = m.OldLog && m.Set.Snapshots != Frequent })
	}
	return seen
}

// promoted makes the member a voter. Before 3.5 the pod of a learner may not be ready; what
// counts is that it has caught up and answers. A member that does not answer is not counted on.
func promoted(m *Member) { m.Role, m.Pod.Ready = Voter, m.Health == Healthy }

func restarting(m *Member, s lifecycle.Step) {
	m.Set = templated(s)
	m.Pod = Pod{Exists: true, Version: m.Set.Version, Revision: m.Set.Revision, Exposure: m.Set.Exposure, Snapshots: m.Set.Snapshots}
	m.Volume.Version, m.Volume.AwaitsPod = m.Set.Version, false
	if m.Volume.doomed() {
		m.Volume = Volume{}
	}
	m.Health, m.Since, m.Watched, m.Leads, m.Version, m.Restarting = Unknown, time.Time{}, time.Time{}, false, "", true
	m.Crossing, m.Refused, m.PeersRefused, m.PeersAccepted = s.Args[ArgBudget] == OverBudget, false, false, false
}

func serves(m *Member, seen World) {
	m.Health, m.Joined, m.Index, m.Version = Healthy, listed(*m), seen.index(), m.Pod.Version
	m.Pod.Ready, m.Pod.Trouble, m.Pod.Leaving, m.Pod.Ended = m.Role != Learner, lifecycle.PodProblemNone, false, false
	m.Pod.OtherContainer = ""
	m.Pod.Exists, m.Pod.Stale, m.Restarting, m.Bootstrap, m.Set.Problem = true, false, false, BootstrapDisabled, ""
	m.Volume.Spoiled, m.Silence = false, ""
	if place, ok := seen.bestPlace(); ok && m.Pod.Node == "" {
		m.Pod.Node, m.Pod.Zone = place.Node, place.Zone
	}
	m.Pod.Node = cmp.Or(m.Pod.Node, "its node")
	m.Pod.Version, m.Pod.Revision, m.Version = m.Set.Version, m.Set.Revision, m.Set.Version
	m.Pod.Exposure, m.Pod.Snapshots = m.Set.Exposure, m.Set.Snapshots
	m.Refused, m.PeersRefused = false, false
}

// leads returns the world with the named leader, or without one.
func leads(seen World, name string) World {
	for _, m := range seen.Members {
		seen = seen.change(m.Name, func(m *Member) { m.Leads = m.Name == name })
	}
	return seen
}

// allServe returns the world in which every member with data serves and agrees.
func allServe(seen World) World {
	first := ""
	for _, m := range seen.Members {
		if !m.Set.Exists || dataLost(m) {
			continue
		}
		seen = seen.change(m.Name, func(m *Member) {
			if m.Role == Outside {
				m.Role = Voter
			}
			serves(m, seen)
		})
		if first == "" {
			first = m.Name
		}
	}
	seen.Listed, seen.ClusterID = true, max(seen.ClusterID, 1)
	return leads(seen, first)
}
