package etcd

import (
	"fmt"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// heartbeat is how often etcd is asked, because it cannot be watched; soon is how
	// often at the beginning of a wait for it, and resting how often while all is
	// well: that a member ceases to serve, the kubelet's probe tells at once.
	heartbeat = 10 * time.Second
	soon      = 200 * time.Millisecond
	resting   = time.Minute
	// schedulingGrace is how long a pod may look for a node before it counts as
	// hindered: an autoscaler needs a while to bring one.
	schedulingGrace = 30 * time.Second
	// replaceAfter is the default of spec.replaceAfter. A node that restarts is back by
	// then.
	replaceAfter = 5 * time.Minute
	// unpublishedAfter is how long a member may take from having all data to serving clients:
	// longer than etcd waits for the answer to its first publication, which it loses
	// when it got its data as a snapshot. nudgeFor is how long it is helped then, and
	// nudgeEvery how often: who still does not answer is rather out of reach, and the
	// log is not to be filled for it; but the operator may have been away meanwhile.
	unpublishedAfter = 10 * time.Second
	rewriteFor       = 15 * time.Second
	rewriteEvery     = 5 * time.Minute
	// nodeLossSeen is how long Kubernetes may take to call the pods of a node not ready
	// that is off: 50 seconds by default (node-monitor-grace-period), and some to spare.
	nodeLossSeen = 2 * time.Minute
)

// Next is the runbook, in order of precedence.
func (Planner) Next(want *etcdv1.EtcdCluster, seen World, now time.Time) lifecycle.Decision {
	if leaving(want) {
		return teardown(want, seen)
	}
	goal := computeDesired(want, seen)
	decision := permitted(want, seen,
		identityPending(want),              // what must be remembered is written down first
		nameTaken(seen),                    // an earlier cluster of the name serves on
		strippedVolume(seen),               // nothing that is known of a claim may depend on its labels
		wrongOwners(want, seen),            // it needs no member, and must hold before a deletion comes
		editedSet(goal, seen),              // what somebody made of a StatefulSet, such as no replicas
		smallVolume(want, seen),            // no wait comes before it: a full disk may be why a member does not serve
		roomForPod(goal, seen),             // nor is anything lost by making the pod of a silent member again
		forming(goal, seen, now),           // all members at once, until a cluster is there
		failedChange(goal, seen),           // who does not run anyway takes a corrected spec at once
		endedPod(goal, seen),               // nor is anything lost by making a pod anew that has ended
		strippedMember(goal, seen),         // nor by making a StatefulSet anew whose volume is there
		distrusted(goal, seen, now),        // a member that refuses certificates can only be restarted
		otherCluster(want, seen),           // a snapshot restored in place
		divided(seen),                      // two lists of members, and no way to tell which is right
		locked(goal, seen),                 // etcd tells the operator nothing
		quorumAway(goal, seen, now),        // nothing destructive: wait for pods, or tell that data is lost
		unidentified(goal, seen),           // nothing goes before it is known who it is
		halfRemoved(goal, seen),            // finish what was begun: gone from etcd, not from Kubernetes
		excessLearner(goal, seen),          // a learner that nobody wants any more goes first
		halfAdded(goal, seen),              // in etcd, not yet in Kubernetes
		bootstrapConfigPending(want, seen), // nobody votes before its door is shut
		unpublishedMember(seen, now),       // it waits for an entry that nobody may ever write
		strippedPod(seen),                  // neither Services nor StatefulSet find a pod without its labels
		movedURL(goal, seen),               // the others must find it
		unexposedMember(seen),              // who serves is led to
		joiningMember(goal, seen, now),
		deadMember(goal, seen, now),      // repair before any wish
		unmanagedMember(seen),            // who was added by hand
		tooManyMembers(goal, seen),       // the sick first, then the newest follower
		unhealthyMember(goal, seen, now), // nothing that can wait while a member does not serve
		roomAgain(goal, seen),            // an alarm without a cause stops writes
		terminatingClaim(goal, seen),     // its replacement serves
		badCertificates(seen),
		outdatedMember(goal, seen, goal.distrusts), // a new member would be refused by who does not know its authority
		tooFewMembers(goal, seen),
		obstructedMember(seen),                    // a wish would restart others, and this one could not come back
		outdatedMember(goal, seen, goal.outdates), // followers first, the leader moved away and last
		uncovered(goal, seen),                     // 3.7 comes when it can read what is on disk
		revoking(want, seen),                      // the Secrets change when members report
		stuckVolume(want, seen),
		impossibleWish(want, seen),
		alarmed(seen),
		misplacedMember(goal, seen), // the last wish, while nothing else is wrong
	)
	for i, d := range decision.Behind {
		decision.Behind[i] = d.Heartbeat(pace(d, now))
	}
	return decision.Heartbeat(pace(decision, now))
}

// pace is when to ask etcd again. A wait is looked at the more often the younger it
// is: most end within a second.
func pace(d lifecycle.Decision, now time.Time) time.Duration {
	switch {
	case d.Outcome == lifecycle.OutcomeSettled:
		return resting
	case d.Outcome != lifecycle.OutcomeWait || d.Since.IsZero():
		return heartbeat
	}
	return min(max(now.Sub(d.Since)/10, soon), heartbeat)
}

// identityPending waits for the status to hold the token and the first members' names:
// Status writes them, and without them no member may start.
func identityPending(want *etcdv1.EtcdCluster) lifecycle.Decision {
	if want.Status.Memory != nil {
		return lifecycle.Decision{}
	}
	return lifecycle.RetryIn(time.Millisecond, "ChoosingIdentity", "The members' names and the cluster's token are written down.")
}

// nameTaken leaves alone what an earlier cluster of the name left running.
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

// quorumAway speaks while the members have no quorum. As long as enough of them
// have their data they need only come back.
func quorumAway(want desired, seen World, now time.Time) lifecycle.Decision {
	if seen.Listed {
		return lifecycle.Decision{}
	}
	voters, kept := votersWithData(want.EtcdCluster, seen)
	if len(kept) < len(voters)/2+1 {
		return quorumLost(voters, kept)
	}
	if d := badCertificates(seen); d.IsSet() {
		return d // nobody can be asked
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

// neededForQuorum waits for a member that ends again and again, and without which a cluster
// of one or two has no quorum.
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

// lastChange is when the health of a member or its pod last became another.
func lastChange(seen World) (last time.Time) {
	for _, m := range seen.Members {
		last = later(last, later(m.Since, m.Pod.Since))
	}
	return last
}

// halfRemoved finishes a removal that was begun here, by etcdctl, or by a crash.
//
// It is as urgent as a repair, but where enough members are left it was a wish that
// began it.
func halfRemoved(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && !listed(m) && inKube(m) })
	if !ok || !seen.Listed {
		return lifecycle.Decision{}
	}
	s := repair(deleteMember(m, "MemberRemoved", "%s is not in etcd's member list any more; what Kubernetes has of it is deleted.", m.Name))
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

// halfAdded starts a member that etcd knows and Kubernetes does not, or not any
// more: its volume, if it had one, is still there. On a claim that is being deleted no
// other pod can run: that member is replaced.
func halfAdded(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return ourListed(m) && !m.Set.Exists && !m.Volume.Terminating && !dataLost(m) && !obstructed(m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	s := repair(start(want, m, want.version(m), "MemberAdded", "etcd's member list has %s; it is started.", m.Name))
	if !m.Joined {
		s.Cause = lifecycle.CauseSpecChange // it is finished like a repair, but nothing broke
	}
	return lifecycle.Proceed(s)
}

// bootstrapConfigPending waits until what Resources says about doors is so.
func bootstrapConfigPending(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	for _, m := range seen.Members {
		if wanted := bootstrapMode(want, seen, m); ours(m) && m.Bootstrap != wanted && inKube(m) {
			d := await(DoorTold, m, time.Time{}, "SecuringIdentity",
				"%s has started and is told never to start again without its data.", m.Name)
			d.Step = with(d.Step, ArgDoor, string(wanted))
			return d
		}
	}
	return lifecycle.Decision{}
}

// unpublishedMember has an entry written, for the sake of a member that has all data and
// yet serves nobody. When etcd has got its data as a snapshot it does not know that
// it has applied it until it applies the next entry, and refuses to publish itself
// before it knows ("too many requests" in its log). So in a cluster that nobody
// writes to, it would wait for ever (server/etcdserver, setAppliedIndex).
func unpublishedMember(seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return unpublished(m, now) })
	if !ok || !seen.Listed {
		return lifecycle.Decision{}
	}
	s := repair(step(RewriteMemberEntry, m, "MemberMute", "%s has all data and does not serve clients before another entry is written; its own in the member list is written again.", m.Name))
	return lifecycle.Proceed(with(with(s, ArgID, hex(m.ID)), ArgPeerURL, m.PeerURL))
}

// unpublished members answer the kubelet, by a read that needs the others, and not clients. A
// member that went silent while its pod was ready is more likely on a node that is off:
// it counts as mute only when Kubernetes would have noticed that.
func unpublished(m Member, now time.Time) bool {
	silent := ourListed(m) && m.Joined && m.Health == Unknown && m.Silence == "" && m.Pod.Ready && !m.Pod.Leaving
	grace := unpublishedAfter
	if m.Since.After(m.Pod.Since) && m.Pod.Exposure != Hidden {
		grace = nodeLossSeen
	}
	late := now.Sub(later(m.Since, m.Pod.Since)) - grace
	return silent && late >= 0 && late%rewriteEvery < rewriteFor
}

// unexposedMember leads clients to a voter that serves them. Readiness alone would lead them
// to learners, which refuse them, and to who has yet to open its client port.
func unexposedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && m.Joined && seen.servingVoter(m) && unexposed(m) })
	if !ok {
		return lifecycle.Decision{}
	}
	if unlabelled(m) {
		s := repair(step(AddToService, m, "LabelMissing", "%s serves, and has not the label by which clients are led to it.", m.Name))
		s.Cause = lifecycle.CauseDrift
		return lifecycle.Proceed(s)
	}
	s := repair(step(AddToService, m, "MemberServes", "%s serves, and clients are led to it from now on.", m.Name))
	s.Cause = lifecycle.CauseSpecChange // it is finished like a repair, but nothing broke
	return lifecycle.Proceed(s)
}

// deadMember removes a voter that will not come back; tooFewMembers then replaces
// it. Removing comes first because etcd adds no member while a voter is down
// (server/etcdserver, --strict-reconfig-check).
func deadMember(want desired, seen World, now time.Time) lifecycle.Decision {
	for _, m := range seen.Members {
		if cause := lossCause(want, seen, m, now); cause != "" && voter(m) && seen.count(voter) > 1 {
			return lifecycle.Proceed(repair(remove(m, "MemberDead", "%s is replaced: %s.", m.Name, cause)))
		}
	}
	return lifecycle.Decision{}
}

// unmanagedMember removes who was added by hand: the object declares the members. As
// long as a stranger is needed for the quorum, the others are waited for.
func unmanagedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(unmanaged)
	if !ok || seen.change(m.Name, func(m *Member) { m.Role = Outside }).missing() > seen.missing() {
		return lifecycle.Decision{}
	}
	if to, ok := newLeader(seen, m); m.Leads && ok {
		return lifecycle.Proceed(repair(moveLeader(m, to, "StrangeLeader",
			"%s leads, but was not added by the operator and is to be removed; %s takes over.", m.Name, to.Name)))
	}
	s := repair(remove(m, "StrangeMember", "%s (%s) was not added by the operator. Pause the object to keep such members.", m.Name, m.PeerURL))
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

// replacement says for whom a member joins that is one more than wanted.
func replacement(seen World, s lifecycle.Step) lifecycle.Step {
	if old, ok := seen.find(claimTerminating); ok {
		s = repair(s)
		s.Reason = volumeDeleted
		s.Message = fmt.Sprintf("%s joins in the place of %s, whose %s is being deleted: its data lasts only as long as its pod.", s.Target, old.Name, going(old))
		return s
	}
	s.Reason = "SpecChanged"
	s.Message = s.Target + " joins with the present spec, and an old member goes then: without volumes a restart would lose its data."
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
