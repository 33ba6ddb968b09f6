package etcd

import (
	"fmt"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// Governor polls etcd, which cannot be watched. maxPoll is the usual interval, and minPoll
	// the interval at the beginning of a wait. settledPoll applies while the cluster is settled:
	// the kubelet's probe reports at once that a member ceases to serve.
	maxPoll     = 10 * time.Second
	minPoll     = 200 * time.Millisecond
	settledPoll = time.Minute
	// schedulingGrace is how long a pod may stay unscheduled before Governor reports it:
	// an autoscaler needs time to add a node.
	schedulingGrace = 30 * time.Second
	// replaceAfter is the default of spec.replaceAfter. A node restarts in less time.
	replaceAfter = 5 * time.Minute
	// unpublishedAfter is how long a member may take from having all data to serving clients.
	// It exceeds etcd's wait for the answer to its first publication, which a member loses when
	// it got its data as a snapshot. Governor then rewrites the member's entry for rewriteFor,
	// once per rewriteEvery. A member that still does not answer is probably unreachable, and
	// further entries would only fill the log. The period covers a restart of the operator.
	unpublishedAfter = 10 * time.Second
	rewriteFor       = 15 * time.Second
	rewriteEvery     = 5 * time.Minute
	// nodeLossSeen is how long Kubernetes may take to mark the pods of a failed node as not
	// ready: 50 seconds by default (node-monitor-grace-period), plus a margin.
	nodeLossSeen = 2 * time.Minute
)

// Next lists the rules in order of precedence.
func (Planner) Next(want *etcdv1.EtcdCluster, seen World, now time.Time) lifecycle.Decision {
	if isDeleted(want) {
		return teardown(want, seen)
	}
	goal := computeDesired(want, seen)
	decision := permitted(want, seen,
		identityPending(want),              // the status must hold the identity first
		nameTaken(seen),                    // an earlier cluster of the name still runs
		claimWithoutLabels(seen),           // later rules find claims by their labels
		wrongOwners(want, seen),            // needs no member, and must be done before a deletion
		editedSet(goal, seen),              // undoes manual edits, such as zero replicas
		harmlessEdits(goal, seen),          // they may stay, see driftPolicy
		growVolume(want, seen),             // before any wait: a full disk may keep a member from serving
		restartAfterGrowth(goal, seen),     // recreating the pod of a silent member loses nothing
		forming(goal, seen, now),           // starts all members at once, until the cluster exists
		failedChange(goal, seen, now),      // a member that does not run takes a corrected spec at once
		terminatedPod(goal, seen, now),     // recreating a terminated pod loses nothing
		missingStatefulSet(goal, seen),     // nor does recreating a StatefulSet whose volume exists
		authorityMismatch(goal, seen, now), // only a restart helps a member that refuses certificates
		sharedIdentity(seen),               // two pods with one identity, and no evidence which is the member
		otherCluster(want, seen),           // a snapshot restored in place
		divided(seen),                      // two member lists, and no evidence which is right
		memberListDenied(goal, seen),       // etcd denies the operator the member list
		noQuorum(goal, seen, now),          // nothing destructive: waits for pods, or reports lost data
		expelledMembers(want, seen),        // a majority left the member list at once
		unidentified(goal, seen),           // removes nothing while a member's identity is unclear
		halfRemoved(goal, seen),            // finishes a removal: deleted in etcd, not in Kubernetes
		excessLearner(goal, seen),          // an unwanted learner is removed first
		halfAdded(goal, seen),              // finishes an addition: in etcd, not yet in Kubernetes
		bootstrapConfigPending(want, seen), // no member votes before its bootstrap ConfigMap is disabled
		unpublishedMember(seen, now),       // it waits for an entry that may never be written
		podWithoutLabels(seen),             // Services and the StatefulSet find a pod by its labels
		movedURL(goal, seen),               // the other members must reach it
		misleadingMember(seen),             // clients must not read wrong data
		unexposedMember(seen),              // adds a serving member to the Service
		joiningMember(goal, seen, now),
		deadMember(goal, seen, now),      // repairs precede changes
		disarmRemoved(seen),              // alarms without a member still refuse writes
		corruptMember(goal, seen),        // no member may copy corrupt data
		failedContainer(goal, seen),      // its etcd answers, and its pod is not ready
		unmanagedMember(seen),            // removes members that were added by hand
		tooManyMembers(goal, seen),       // unhealthy members first, then the newest follower
		abandonedRemoval(seen),           // before any wait: its member stays
		unhealthyMember(goal, seen, now), // changes wait while a member does not serve
		disarmNoSpace(goal, seen),        // an alarm without a cause still refuses writes
		terminatingClaim(goal, seen),     // its replacement serves
		badCertificates(seen),
		changedNetworkPolicy(want, seen),
		trialOver(goal, seen),                                   // the first member runs with the template
		outdatedMember(goal, seen, goal.hasOldAuthorities, now), // members that do not trust the new authority would refuse a new member
		tooFewMembers(goal, seen),
		obstructedMember(seen),                           // a change restarts members, and this one could not start again
		outdatedMember(goal, seen, goal.isOutdated, now), // followers first; the leadership moves before the last restart
		snapshotPending(goal, seen),                      // 3.7 must be able to read the log on disk
		revocationProgress(want, seen),                   // the Secrets follow the members' reports
		stuckVolume(want, seen),
		impossibleChange(want, seen),
		reportAlarms(seen),
		misplacedMember(goal, seen), // the last change, while nothing else is wrong
	)
	return polled(decision, now)
}

// polled adds the poll interval to the decision, and to those that the engine may take instead.
func polled(d lifecycle.Decision, now time.Time) lifecycle.Decision {
	for i, next := range d.Behind {
		d.Behind[i] = next.Heartbeat(pollInterval(next, now))
	}
	return d.Heartbeat(pollInterval(d, now))
}

// pollInterval is the time until etcd is queried again. It grows with the age of a wait: most
// waits end within a second.
func pollInterval(d lifecycle.Decision, now time.Time) time.Duration {
	switch {
	case d.Outcome == lifecycle.OutcomeSettled:
		return settledPoll
	case d.Outcome != lifecycle.OutcomeWait || d.Since.IsZero():
		return maxPoll
	}
	return min(max(now.Sub(d.Since)/10, minPoll), maxPoll)
}

// identityPending waits until the status holds the token and the names of the first members.
// Status writes them, and no member may start without them.
func identityPending(want *etcdv1.EtcdCluster) lifecycle.Decision {
	if want.Status.Bootstrap != nil {
		return lifecycle.Decision{}
	}
	return lifecycle.RetryIn(time.Millisecond, "ChoosingIdentity", "Governor is recording the members' names and the cluster's token in the status.")
}

// nameTaken leaves objects of an earlier cluster of the same name untouched.
func nameTaken(seen World) lifecycle.Decision {
	switch {
	case len(seen.Orphans) == 0 && seen.Earlier:
		return lifecycle.RetryIn(time.Second, "PreviousStillDeleting", "An earlier cluster of this name is still being deleted.")
	case len(seen.Orphans) == 0:
		return lifecycle.Decision{}
	}
	return lifecycle.Block("NameTaken", fmt.Sprintf(
		"An earlier cluster of this name still runs: %s. Governor does not change it. Delete it, or give this object another name. Its volumes stay, and this object starts empty.",
		strings.Join(seen.Orphans, ", ")))
}

// noQuorum decides while the members have no quorum. As long as enough of them have their data,
// they only need to restart.
func noQuorum(want desired, seen World, now time.Time) lifecycle.Decision {
	if seen.Listed {
		return lifecycle.Decision{}
	}
	voters, kept := votersWithData(want.EtcdCluster, seen)
	if len(kept) < len(voters)/2+1 {
		return quorumLost(voters, kept)
	}
	if d := badCertificates(seen); d.IsSet() {
		return d // no member can be queried
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
		"%d of %d voters have their data, and %d must serve to form a quorum.%s", len(kept), len(voters), len(voters)/2+1, unavailableMembers(seen))
}

// neededForQuorum waits for a crash-looping member without which a cluster of one or two has no
// quorum.
func neededForQuorum(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff && onlyEvidence(want, seen, m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	d := await(QuorumBack, Member{Name: want.Name}, lastChange(seen), string(lifecycle.PodProblemCrashLoopBackOff),
		"%s: %s%s. There is no quorum without it. See its log with: kubectl logs --previous.", m.Name, m.Pod.Detail, fullDiskRemedy(m.Pod.Detail))
	d.Suspect = true
	return d
}

// lastChange is the time of the last change of any member's health or pod.
func lastChange(seen World) (last time.Time) {
	for _, m := range seen.Members {
		last = later(last, later(m.Since, m.Pod.Since))
	}
	return last
}

func excessLearner(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && learner(m) })
	if !ok || seen.count(ourListed) <= want.room {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(remove(m, "LearnerNotWanted", "%s was joining, but only %d members are wanted.", m.Name, want.Spec.Size))
}

func ourListed(m Member) bool { return ours(m) && listed(m) }

func ourVoter(m Member) bool { return ours(m) && voter(m) }

// halfAdded starts a member that is in etcd's list and has no StatefulSet, or no longer has one.
// Its volume, if it had one, still exists. No other pod can use a doomed volume: that member is
// replaced.
func halfAdded(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return ourListed(m) && !m.Set.Exists && !m.Volume.doomed() && !dataLost(m) && !obstructed(m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	s := repair(start(want, m, want.version(m), "MemberAdded", "etcd's member list has %s; Governor starts it.", m.Name))
	if !m.Joined {
		s.Cause = lifecycle.CauseSpecChange // it has the intent of a repair, but nothing broke
	}
	return lifecycle.Proceed(want.judgedStart(m, s))
}

// bootstrapConfigPending waits until the bootstrap ConfigMaps are as Resources declares them.
func bootstrapConfigPending(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	for _, m := range seen.Members {
		if wanted := bootstrapMode(want, seen, m); ours(m) && m.Bootstrap != wanted && inKube(m) {
			d := await(BootstrapConfigWritten, m, time.Time{}, "SecuringIdentity",
				"%s has started; its bootstrap ConfigMap must forbid a start without data.", m.Name)
			d.Step = d.Step.WithArgs(bootstrapArgs{wanted})
			return d
		}
	}
	return lifecycle.Decision{}
}

// unpublishedMember writes an entry for a member that has all data and does not serve clients.
// An etcd member that got its data as a snapshot does not know that it has applied it until it
// applies the next entry. Before that it refuses to publish itself ("too many requests" in its
// log). In a cluster without writes it would wait forever (server/etcdserver, setAppliedIndex).
func unpublishedMember(seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return unpublished(m, now) })
	if !ok || !seen.Listed || seen.Certificates != "" { // with an unusable certificate it answers no client
		return lifecycle.Decision{}
	}
	s := repair(step(RewriteMemberEntry, m, "MemberUnpublished", "%s has all data and does not serve clients until etcd writes another entry; Governor rewrites its entry in the member list.", m.Name))
	return lifecycle.Proceed(s.WithArgs(entryArgs{MemberID(m.ID), m.PeerURL}))
}

// unpublished reports whether a member answers the kubelet, with a read that needs the other
// members, and does not answer clients. A member that went silent while its pod was ready is
// more likely on a failed node. It counts as unpublished only once Kubernetes would have
// detected that.
func unpublished(m Member, now time.Time) bool {
	silent := ourListed(m) && m.Joined && m.Health == Unknown && m.Silence == "" && m.Pod.Ready && !m.Pod.Leaving
	grace := unpublishedAfter
	if m.Since.After(m.Pod.Since) && m.Pod.Exposure != Hidden {
		grace = nodeLossSeen
	}
	late := now.Sub(silentFrom(m, now)) - grace
	return silent && late >= 0 && late%rewriteEvery < rewriteFor
}

// unexposedMember adds a voter that serves to the client Service. Readiness alone would also add
// learners, which refuse clients, and members whose client port is not open yet.
func unexposedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return ours(m) && m.Joined && seen.servingVoter(m) && unexposed(m) && !seen.misleads(m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	if unlabelled(m) {
		return lifecycle.Proceed(revert(step(AddToService, m, "LabelMissing", "%s serves and lacks the label by which the client Service selects it.", m.Name)))
	}
	s := repair(step(AddToService, m, "MemberServes", "%s serves; the client Service now includes it.", m.Name))
	s.Cause = lifecycle.CauseSpecChange // it has the intent of a repair, but nothing broke
	return lifecycle.Proceed(s)
}

// deadMember removes a voter that will not return; tooFewMembers then replaces it. Removal comes
// first because etcd adds no member while a voter is down (server/etcdserver,
// --strict-reconfig-check).
func deadMember(want desired, seen World, now time.Time) lifecycle.Decision {
	dead := func(m Member) bool { return lossCause(want, seen, m, now) != "" && voter(m) && seen.count(voter) > 1 }
	return seen.each(dead, func(m Member) lifecycle.Step {
		return repair(remove(m, "MemberDead", "Governor replaces %s: %s.", m.Name, lossCause(want, seen, m, now)))
	})
}

// unmanagedMember removes a member that was added by hand: the object declares the members. It
// waits as long as the quorum needs the unmanaged member.
func unmanagedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(unmanaged)
	if !ok || seen.change(m.Name, func(m *Member) { m.Role = Outside }).missing() > seen.missing() {
		return lifecycle.Decision{}
	}
	if to, ok := newLeader(seen, m); m.Leads && ok {
		return lifecycle.Proceed(repair(moveLeader(m, to, "UnmanagedLeader",
			"%s leads, but Governor did not add it and removes it; the leadership moves to %s.", m.Name, to.Name)))
	}
	return lifecycle.Proceed(revert(remove(m, "UnmanagedMember", "Governor did not add %s (%s) and removes it. Pause the object to keep such members.", m.Name, m.PeerURL)))
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
	if successor, able := newLeader(seen, m); m.Leads && able && present(want.EtcdCluster, seen).can(leaderMoves) {
		return lifecycle.Proceed(moveLeader(m, successor, "TooManyMembers", "%s leads and is removed, because its %s; the leadership moves to %s.", m.Name, doom(m), successor.Name))
	}
	return lifecycle.Proceed(remove(m, "TooManyMembers", "There are %d members and %d are wanted; Governor removes %s.", has, size, m.Name))
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
	if d := refusedTemplate(want, seen, start(want, m, want.joins, specChanged, "")); d.IsSet() {
		return d // it could not start
	}
	if d := replacementTooSmall(want, seen); has >= size && d.IsSet() {
		return d
	}
	s := step(name, m, "TooFewMembers", "There are %d members and %d are wanted; %s joins as a %s.", has, size, m.Name, verb)
	if has >= size {
		s = replacement(seen, s)
	}
	return lifecycle.Proceed(s.WithArgs(addArgs{PeerURL(want.EtcdCluster, m.Name)}))
}

// replacement explains which member an additional member replaces.
func replacement(seen World, s lifecycle.Step) lifecycle.Step {
	if old, ok := seen.find(claimTerminating); ok {
		s = repair(s)
		s.Reason = volumeDeleted
		s.Message = fmt.Sprintf("%s replaces %s, whose %s: its data lasts only as long as its pod.", s.Target, old.Name, doom(old))
		return s
	}
	s.Reason = specChanged
	s.Message = s.Target + " joins with the current spec; Governor then removes an old member. Without volumes a restart would lose its data."
	return s
}

// replacementServes reports that there is one more member than wanted: the replacement of an
// outdated member without a volume serves already.
func replacementServes(want desired, seen World) bool {
	return Volatile(want.EtcdCluster) && seen.count(ourVoter) > int(want.Spec.Size)
}

// outdatedMember restarts one member with the current spec and the next version.
func outdatedMember(want desired, seen World, is func(Member) bool, now time.Time) lifecycle.Decision {
	m, ok := followerFirst(seen, is)
	if !ok {
		return lifecycle.Decision{}
	}
	to, reason := want.after(m), want.difference(m)
	if d := quotaTooSmall(want, seen, m); d.IsSet() {
		return d
	}
	s := restart(want, m, to, reason, "%s restarts with etcd %s and the current spec.", m.Name, to)
	if d := lifecycle.First(refusedTemplate(want, seen, s), unverifiedTemplate(seen, s)); d.Outcome == lifecycle.OutcomeBlocked && !replacementServes(want, seen) {
		return d
	}
	if d := untriedTemplate(want, seen, m, s, now); d.IsSet() {
		return d
	}
	s = withoutTrial(seen, s, now)
	if successor, able := newLeader(seen, m); m.Leads && able && present(want.EtcdCluster, seen).can(leaderMoves) {
		return lifecycle.Proceed(moveLeader(m, successor, reason, "%s leads and must restart; the leadership moves to %s.", m.Name, successor.Name))
	}
	if Volatile(want.EtcdCluster) {
		return lifecycle.Proceed(markIrreversible(want, seen, m, to, remove(m, reason, "%s has an old spec or version, and its replacement serves.", m.Name)))
	}
	if seen.count(voter) == 2 && want.Spec.Size > 2 {
		s = overBudget(s) // the budget keeps both, and no third member can join before
	}
	return lifecycle.Proceed(markIrreversible(want, seen, m, to, s))
}
