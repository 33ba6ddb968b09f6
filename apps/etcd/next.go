package etcd

import (
	"fmt"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// heartbeat is the interval of requests to etcd, which cannot be watched. soon is the
	// interval at the beginning of a wait, and resting the interval while the cluster is as
	// declared: the kubelet's probe reports at once that a member stops serving.
	heartbeat = 10 * time.Second
	soon      = 200 * time.Millisecond
	resting   = time.Minute
	// schedulingGrace is how long a pod may be unscheduled before that is a problem: an
	// autoscaler needs time to add a node.
	schedulingGrace = 30 * time.Second
	// replaceAfter is the default of spec.replaceAfter. A node that restarts is back earlier.
	replaceAfter = 5 * time.Minute
	// unpublishedAfter is how long a member may take from having all data to serving clients. It
	// is longer than etcd waits for the answer to its first publication, which it loses when
	// it received its data as a snapshot. The operator rewrites the entry for rewriteFor, once
	// in rewriteEvery: a member that still does not answer is probably unreachable, and more
	// entries would only fill the log. The operator may have been away meanwhile, so it repeats.
	unpublishedAfter = 10 * time.Second
	rewriteFor       = 15 * time.Second
	rewriteEvery     = 5 * time.Minute
	// nodeLossSeen is how long Kubernetes may take to mark the pods of a lost node not ready:
	// 50 seconds by default (node-monitor-grace-period), and a margin.
	nodeLossSeen = 2 * time.Minute
)

// Next is the runbook, in order of precedence.
func (Planner) Next(want *etcdv1.EtcdCluster, seen World, now time.Time) lifecycle.Decision {
	if leaving(want) {
		return teardown(want, seen)
	}
	goal := computeDesired(want, seen)
	decision := permitted(want, seen,
		identityPending(want),              // the status must hold the identity before a member starts
		nameTaken(seen),                    // members of an earlier cluster of this name still run
		strippedVolume(seen),               // later rules may find a claim by its labels
		wrongOwners(want, seen),            // it needs no member, and must be right before a deletion
		editedSet(goal, seen),              // a StatefulSet that another writer changed, e.g. to zero replicas
		smallVolume(want, seen),            // before any wait: a full disk may be why a member does not serve
		roomForPod(goal, seen),             // recreating the pod of a silent member loses nothing
		forming(goal, seen, now),           // all initial members at once, until the cluster exists
		failedChange(goal, seen),           // a member that cannot run takes a corrected spec at once
		endedPod(goal, seen),               // recreating a finished pod loses nothing
		strippedMember(goal, seen),         // nor does recreating the StatefulSet of an existing volume
		distrusted(goal, seen, now),        // a member that refuses certificates must restart
		otherCluster(want, seen),           // a snapshot was restored in place
		divided(seen),                      // two member lists, and no way to choose between them
		locked(goal, seen),                 // etcd's authentication refuses the operator
		quorumAway(goal, seen, now),        // destroys nothing: waits for pods, or reports lost data
		unidentified(goal, seen),           // no removal before each member is identified
		halfRemoved(goal, seen),            // removed from etcd, but not from Kubernetes
		excessLearner(goal, seen),          // a learner beyond spec.size goes first
		halfAdded(goal, seen),              // added to etcd, but not to Kubernetes
		bootstrapConfigPending(want, seen), // no vote while the bootstrap settings still name the member
		unpublishedMember(seen, now),       // it waits for a log entry that may never come
		strippedPod(seen),                  // neither Services nor the StatefulSet select an unlabeled pod
		movedURL(goal, seen),               // the other members must reach it
		unexposedMember(seen),              // a voter that serves belongs into the client Service
		joiningMember(goal, seen, now),
		deadMember(goal, seen, now),      // repairs before changes of the spec
		unmanagedMember(seen),            // a member that a user added
		tooManyMembers(goal, seen),       // an unhealthy member first, then the newest follower
		unhealthyMember(goal, seen, now), // no optional change while a member does not serve
		roomAgain(goal, seen),            // an alarm without a cause blocks writes
		terminatingClaim(goal, seen),     // its replacement serves
		badCertificates(seen),
		outdatedMember(goal, seen, goal.distrusts), // members that do not trust the new authority would refuse a new member
		tooFewMembers(goal, seen),
		obstructedMember(seen),                    // a change would restart others while this one could not return
		outdatedMember(goal, seen, goal.outdates), // followers first; the leader last, after it has handed over
		uncovered(goal, seen),                     // 3.7 waits until it can read what is on disk
		revoking(want, seen),                      // the Secrets change when members report
		stuckVolume(want, seen),
		impossibleWish(want, seen),
		alarmed(seen),
		misplacedMember(goal, seen), // last, and only while nothing else is wrong
	)
	for i, d := range decision.Behind {
		decision.Behind[i] = d.Heartbeat(pace(d, now))
	}
	return decision.Heartbeat(pace(decision, now))
}

// pace returns when to observe etcd again. Intervals grow with the age of a wait, because
// most waits end within a second.
func pace(d lifecycle.Decision, now time.Time) time.Duration {
	switch {
	case d.Outcome == lifecycle.OutcomeSettled:
		return resting
	case d.Outcome != lifecycle.OutcomeWait || d.Since.IsZero():
		return heartbeat
	}
	return min(max(now.Sub(d.Since)/10, soon), heartbeat)
}

// identityPending waits until the status holds the token and the names of the first members.
// No member may start before.
func identityPending(want *etcdv1.EtcdCluster) lifecycle.Decision {
	if want.Status.Memory != nil {
		return lifecycle.Decision{}
	}
	return lifecycle.RetryIn(time.Millisecond, "ChoosingIdentity", "Governor records the members' names and the cluster's token in the status.")
}

// nameTaken blocks while members of an earlier cluster of the same name run. Governor does
// not touch them.
func nameTaken(seen World) lifecycle.Decision {
	switch {
	case len(seen.Orphans) == 0 && seen.Earlier:
		return lifecycle.RetryIn(time.Second, "PreviousStillDeleting", "An earlier cluster of this name is still being deleted.")
	case len(seen.Orphans) == 0:
		return lifecycle.Decision{}
	}
	return lifecycle.Block("NameTaken", fmt.Sprintf(
		"An earlier cluster of this name still runs: %s. Governor leaves it alone. Remove it, or give this object another name.",
		strings.Join(seen.Orphans, ", ")))
}

// quorumAway reports that the members have no quorum. While enough members have their data,
// they only need to return.
func quorumAway(want desired, seen World, now time.Time) lifecycle.Decision {
	if seen.Listed {
		return lifecycle.Decision{}
	}
	voters, kept := votersWithData(want.EtcdCluster, seen)
	if len(kept) < len(voters)/2+1 {
		return quorumLost(voters, kept)
	}
	if d := badCertificates(seen); d.IsSet() {
		return d // no member can be asked
	}
	for _, m := range seen.Members {
		if d := hindered(want, seen, m, now); d.IsSet() && !dataLost(m) {
			return d
		}
	}
	if d := neededForQuorum(want, seen); d.IsSet() {
		return d
	}
	return await(QuorumBack, Member{Name: want.Name}, lastChange(seen), "QuorumAway",
		"%d of %d voters have their data, and %d must come back to agree.%s", len(kept), len(voters), len(voters)/2+1, absences(seen))
}

// neededForQuorum waits for a member in a crash loop without which a cluster of one or two
// members has no quorum.
func neededForQuorum(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff && onlyWitness(want, seen, m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	d := await(QuorumBack, Member{Name: want.Name}, lastChange(seen), string(lifecycle.PodProblemCrashLoopBackOff),
		"%s: %s%s. There is no quorum without it. See its log with: kubectl logs --previous.", m.Name, m.Pod.Detail, fullDisk(m.Pod.Detail))
	d.Suspect = true
	return d
}

// lastChange returns when the health of a member, or its pod, last changed.
func lastChange(seen World) (last time.Time) {
	for _, m := range seen.Members {
		last = later(last, later(m.Since, m.Pod.Since))
	}
	return last
}

// halfRemoved finishes the removal of a member that etcd does not list any more.
//
// It is as urgent as a repair. Where enough members are left, a change of the spec caused it.
func halfRemoved(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && !listed(m) && inKube(m) })
	if !ok || !seen.Listed {
		return lifecycle.Decision{}
	}
	s := repair(deleteMember(m, "MemberRemoved", "%s is not in etcd's member list any more; Governor deletes its StatefulSet and its volume.", m.Name))
	if seen.count(ourListed) >= int(want.Spec.Size) {
		s.Cause = lifecycle.CauseSpecChange
	}
	return lifecycle.Proceed(s)
}

func excessLearner(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && learner(m) })
	if !ok || seen.count(ourListed) <= want.room {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(remove(m, "LearnerNotWanted", "%s was joining, but only %d members are wanted.", m.Name, want.Spec.Size))
}

func ourListed(m Member) bool { return ours(m) && listed(m) }

// halfAdded starts a member that etcd lists and that has no StatefulSet. Its volume, if it
// had one, still exists. No other pod can use a claim that is being deleted: such a member is
// replaced instead.
func halfAdded(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return ourListed(m) && !m.Set.Exists && !m.Volume.Terminating && !dataLost(m) && !obstructed(m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	s := repair(start(want, m, want.version(m), "MemberAdded", "etcd's member list has %s; it is started.", m.Name))
	if !m.Joined {
		s.Cause = lifecycle.CauseSpecChange // it has the priority of a repair, but nothing broke
	}
	return lifecycle.Proceed(s)
}

// bootstrapConfigPending waits until the ConfigMaps have the bootstrap mode of each member.
func bootstrapConfigPending(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	for _, m := range seen.Members {
		if wanted := bootstrapMode(want, seen, m); ours(m) && m.Bootstrap != wanted && inKube(m) {
			d := await(BootstrapConfigWritten, m, time.Time{}, "SecuringIdentity",
				"%s has started; its ConfigMap must forbid a start without its data.", m.Name)
			d.Step = with(d.Step, ArgBootstrap, string(wanted))
			return d
		}
	}
	return lifecycle.Decision{}
}

// unpublishedMember writes a log entry for a member that has all data and serves no client.
// After etcd received its data as a snapshot, it does not know that it has applied the
// snapshot until it applies the next entry, and does not publish itself before ("too many
// requests" in its log). In a cluster without writes it would wait for ever
// (server/etcdserver, setAppliedIndex).
func unpublishedMember(seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return unpublished(m, now) })
	if !ok || !seen.Listed {
		return lifecycle.Decision{}
	}
	s := repair(step(RewriteMemberEntry, m, "MemberUnpublished", "%s has all data and serves no clients before the next log entry; Governor rewrites its entry in the member list.", m.Name))
	return lifecycle.Proceed(with(with(s, ArgID, hex(m.ID)), ArgPeerURL, m.PeerURL))
}

// unpublished reports whether a member answers the kubelet's probe, a read that needs a
// quorum, and no client. A member that stopped answering while its pod was ready is more
// likely on a lost node: it counts as unpublished only when Kubernetes would have noticed that.
func unpublished(m Member, now time.Time) bool {
	silent := ourListed(m) && m.Joined && m.Health == Unknown && m.Silence == "" && m.Pod.Ready && !m.Pod.Leaving
	grace := unpublishedAfter
	if m.Since.After(m.Pod.Since) && m.Pod.Exposure != Hidden {
		grace = nodeLossSeen
	}
	late := now.Sub(later(m.Since, m.Pod.Since)) - grace
	return silent && late >= 0 && late%rewriteEvery < rewriteFor
}

// unexposedMember adds a voter that serves to the client Service. Readiness alone would add
// learners, which refuse clients, and members that have not opened their client port yet.
func unexposedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && m.Joined && seen.servingVoter(m) && unexposed(m) })
	if !ok {
		return lifecycle.Decision{}
	}
	if unlabelled(m) {
		s := repair(step(AddToService, m, "LabelMissing", "%s serves, and its pod lacks the label that the client Service selects.", m.Name))
		s.Cause = lifecycle.CauseDrift
		return lifecycle.Proceed(s)
	}
	s := repair(step(AddToService, m, "MemberServes", "%s serves and joins the client Service.", m.Name))
	s.Cause = lifecycle.CauseSpecChange // it has the priority of a repair, but nothing broke
	return lifecycle.Proceed(s)
}

// deadMember removes a voter that will not return; tooFewMembers then replaces it. The
// removal comes first because etcd adds no member while a voter is down
// (server/etcdserver, --strict-reconfig-check).
func deadMember(want desired, seen World, now time.Time) lifecycle.Decision {
	for _, m := range seen.Members {
		if cause := lossCause(want, seen, m, now); cause != "" && voter(m) && seen.count(voter) > 1 {
			return lifecycle.Proceed(repair(remove(m, "MemberDead", "%s is replaced: %s.", m.Name, cause)))
		}
	}
	return lifecycle.Decision{}
}

// unmanagedMember removes a member that a user added with etcdctl: the object declares the
// members. While the quorum needs that member, the rule waits for the others.
func unmanagedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(unmanaged)
	if !ok || seen.change(m.Name, func(m *Member) { m.Role = Outside }).missing() > seen.missing() {
		return lifecycle.Decision{}
	}
	if to, ok := newLeader(seen, m); m.Leads && ok {
		return lifecycle.Proceed(repair(moveLeader(m, to, "UnmanagedLeader",
			"%s leads, but Governor did not add it and removes it next; %s takes over.", m.Name, to.Name)))
	}
	s := repair(remove(m, "UnmanagedMember", "Governor did not add %s (%s) and removes it. Pause the object to keep such members.", m.Name, m.PeerURL))
	s.Cause = lifecycle.CauseDrift
	return lifecycle.Proceed(s)
}

func tooManyMembers(want desired, seen World) lifecycle.Decision {
	has, size := seen.count(ourListed), int(want.Spec.Size)
	if has <= want.room {
		return lifecycle.Decision{}
	}
	m, ok := removalCandidate(seen)
	if !ok {
		return lifecycle.Decision{}
	}
	if heir, able := newLeader(seen, m); m.Leads && able && present(want.EtcdCluster, seen).can(leaderMoves) {
		return lifecycle.Proceed(moveLeader(m, heir, "TooManyMembers", "%s leads and goes, because its %s is being deleted; %s takes over.", m.Name, going(m), heir.Name))
	}
	return lifecycle.Proceed(remove(m, "TooManyMembers", "There are %d members and %d are wanted; %s goes.", has, size, m.Name))
}

func tooFewMembers(want desired, seen World) lifecycle.Decision {
	has, size := seen.count(ourListed), int(want.Spec.Size)
	if has >= want.room || want.rebalances && has >= size {
		return lifecycle.Decision{}
	}
	name, verb := AddLearner, "learner"
	if v := want.joins; !v.can(hasLearners) {
		if has == 1 {
			return needsLearners(v)
		}
		name, verb = AddVoter, "voter"
	}
	m := Member{Name: memberName(want.EtcdCluster, nextNumber(want.EtcdCluster, seen))}
	s := step(name, m, "TooFewMembers", "There are %d members and %d are wanted; %s joins as a %s.", has, size, m.Name, verb)
	if has >= size {
		s = replacement(seen, s)
	}
	return lifecycle.Proceed(with(s, ArgPeerURL, PeerURL(want.EtcdCluster, m.Name)))
}

// replacement completes the step that adds one member more than spec.size: it names the
// member that the new one replaces.
func replacement(seen World, s lifecycle.Step) lifecycle.Step {
	if old, ok := seen.find(claimTerminating); ok {
		s = repair(s)
		s.Reason = volumeDeleted
		s.Message = fmt.Sprintf("%s joins in the place of %s, whose %s is being deleted: the data of %[2]s exists only as long as its pod.", s.Target, old.Name, going(old))
		return s
	}
	s.Reason = "SpecChanged"
	s.Message = s.Target + " joins with the present spec, and then an old member goes: without volumes a restart would lose its data."
	return s
}

// outdatedMember restarts one member with the present spec and the next version.
func outdatedMember(want desired, seen World, is func(Member) bool) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return is(m) && !m.Leads })
	if !ok {
		m, ok = seen.find(is)
	}
	if !ok {
		return lifecycle.Decision{}
	}
	to, reason := want.after(m), want.difference(m)
	if heir, able := newLeader(seen, m); m.Leads && able && present(want.EtcdCluster, seen).can(leaderMoves) {
		return lifecycle.Proceed(moveLeader(m, heir, reason, "%s leads and is to be restarted; %s takes over.", m.Name, heir.Name))
	}
	if Volatile(want.EtcdCluster) {
		return lifecycle.Proceed(forGood(want, seen, m, to, remove(m, reason, "%s has an old spec or version and has been replaced.", m.Name)))
	}
	s := restart(want, m, to, reason, "%s is restarted with etcd %s and the present spec.", m.Name, to)
	return lifecycle.Proceed(forGood(want, seen, m, to, s))
}
