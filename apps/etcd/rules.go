package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// forming starts all initial members at once and waits for the cluster to form.
func forming(want desired, seen World, now time.Time) lifecycle.Decision {
	if formed(want.EtcdCluster, seen) || want.Status.Bootstrap == nil {
		return lifecycle.Decision{}
	}
	if _, err := target(want.EtcdCluster); err != nil {
		return unknownVersion(err)
	}
	return lifecycle.First(
		badCertificates(seen),
		obstructedMember(seen),
		startInitial(want, seen),
		failedChange(want, seen, now),
		terminatedPod(want, seen, now),
		hinderedAny(want, seen, now),
		await(Formed, Member{Name: want.Name}, time.Time{}, "Forming", "%d members are starting and forming a cluster.",
			len(bootstrapState(want.EtcdCluster).InitialMembers)),
	)
}

func startInitial(want desired, seen World) lifecycle.Decision {
	var missing []string
	for _, name := range bootstrapState(want.EtcdCluster).InitialMembers {
		if m, _ := seen.named(name); !m.Set.Exists || claimMissing(want, seen, m) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return lifecycle.Decision{}
	}
	s := formCluster(want, missing)
	s.Message = strings.TrimSpace(s.Message + " " + oldVolumes(seen))
	return lifecycle.Proceed(s)
}

// claimMissing reports that the claim of a member was deleted before the cluster formed: no member
// answers for a cluster, and none ever did. The claim is created again.
func claimMissing(want desired, seen World, m Member) bool {
	return Unformed(want.EtcdCluster, seen, m) && !m.Volume.Exists && !Volatile(want.EtcdCluster)
}

// Unformed reports that the member has no data: no cluster has answered yet.
func Unformed(want *etcdv1.EtcdCluster, seen World, m Member) bool {
	return seen.ClusterID == 0 && want.Status.ClusterID == "" && m.Bootstrap == BootstrapCluster
}

// missingStatefulSet recreates a deleted StatefulSet, even while no quorum reports the member
// list: the volume and the status identify the member.
func missingStatefulSet(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return !seen.Listed && m.Volume.Exists && !m.Volume.doomed() && !m.Set.Exists && !obstructed(m) && mayBelong(want.EtcdCluster, m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(want.judgedStart(m, repair(start(want, m, want.version(m), "StatefulSetMissing",
		"%s has its volume but no StatefulSet; Governor creates it again.", m.Name))))
}

// mayBelong reports whether the last known member list had the member, or no list is recorded.
// Starting another member is harmless: it has its data, and the others refuse it.
func mayBelong(want *etcdv1.EtcdCluster, m Member) bool {
	known := false
	for _, old := range want.Status.Members {
		known = known || old.Role != ""
	}
	return !known || Remembered(want, m.Name).Role != ""
}

// terminatedPod recreates a pod on its volume. A terminated pod keeps no claim that is being deleted,
// and without its volume the member is replaced. So is a member whose node rejects each of its pods.
func terminatedPod(want desired, seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		ended := m.Pod.Ended && !m.Pod.Leaving && m.Set.Exists && !dataLost(m) && !obstructed(m)
		return ended && (!seen.Listed || lossCause(want, seen, m, now) == "")
	})
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(repair(restart(want, m, want.after(m), "PodEnded",
		"The pod of %s has terminated and cannot run again.", m.Name)))
}

// votersWithData are the last known voters, and those of them that have their data.
func votersWithData(want *etcdv1.EtcdCluster, seen World) (voters, kept []string) {
	for _, m := range want.Status.Members {
		if m.Role == roleLeader || m.Role == roleFollower {
			voters = append(voters, m.Name)
		}
	}
	if len(voters) == 0 {
		voters = bootstrapState(want).InitialMembers
	}
	if len(voters) == 0 { // the record was deleted from the status
		for _, m := range currentMembers(want, seen) {
			voters = append(voters, m.Name)
		}
	}
	for _, name := range voters {
		if m, ok := seen.named(name); ok && hasData(m) {
			kept = append(kept, name)
		}
	}
	return voters, kept
}

// hasData reports that the member may return with its data. One whose claim was deleted under its pod
// does not, if the container in that pod cannot mount the volume any more.
func hasData(m Member) bool {
	unmountable := m.Volume.doomed() && m.Pod.Trouble == lifecycle.PodProblemContainerCannotStart
	return !dataLost(m) && (!m.Volume.Unbound || holdsVolume(m.Pod)) && !m.Volume.Spoiled && !unmountable && (m.Unmanaged || m.Volume.Exists)
}

func quorumLost(voters, kept []string) lifecycle.Decision {
	has := "none has its data"
	switch {
	case len(kept) == 1:
		has = "only " + kept[0] + " has its data"
	case len(kept) > 0:
		has = "only " + strings.Join(kept, ", ") + " have their data"
	}
	return lifecycle.Block(reasonDataLost, fmt.Sprintf(
		"Of the %d voters %s, and %d are needed. Governor deletes nothing. If you can restore a lost volume, the cluster "+
			"then recovers by itself. Otherwise create another EtcdCluster and write your data into it as a client; "+
			"etcdutl snapshot restore makes a snapshot, or the database on a remaining volume, readable.",
		len(voters), has, len(voters)/2+1))
}

// joiningMember promotes a learner once it has caught up.
func joiningMember(want desired, seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && learner(m) })
	if !ok {
		return lifecycle.Decision{}
	}
	if cause := lossCause(want, seen, m, now); cause != "" {
		return lifecycle.Proceed(repair(remove(m, "LearnerDead", "%s cannot join, and Governor replaces it: %s.", m.Name, cause)))
	}
	if caughtUp(seen, m) || inSync(seen, m) {
		s := step(Promote, m, "LearnerCaughtUp", "%s has caught up and gets a vote.", m.Name).WithArgs(idArgs{MemberID(m.ID)})
		s.Intent = lifecycle.IntentRepair // it finishes an addition, also during a freeze: repairs come after it
		return lifecycle.Proceed(s)
	}
	if deadMember(want, seen, now).IsSet() {
		return lifecycle.Decision{} // a learner that cannot join must not keep a dead voter
	}
	if d := hindered(want, seen, m, now); d.IsSet() {
		return d
	}
	return await(CaughtUp, m, m.Pod.Since, "LearnerCatchingUp", "%s is copying the data and then gets a vote.", m.Name)
}

// caughtUp is etcd's own measure: nine tenths of the leader's log (server/etcdserver,
// readyPercentThreshold).
func caughtUp(seen World, m Member) bool {
	l, ok := seen.leader()
	return ok && m.Joined && m.Health == Healthy && m.Index*10 >= l.Index*9
}

// inSync recognizes a learner that has caught up but does not serve clients yet, which takes
// etcd seven seconds after a snapshot. It has answered the kubelet's read, for which it needed
// all of the leader's log. The leader makes the final decision: it refuses to promote a learner
// that is behind. If the learner fails at once, the others still have a quorum.
func inSync(seen World, m Member) bool {
	return readsLinearizably(m) && m.Joined && seen.change(m.Name, promoted).missing() == 0
}

// lossCause is the reason why a member will not return; empty if it may.
func lossCause(want desired, seen World, m Member, now time.Time) string {
	switch {
	case m.Unmanaged || !listed(m) || m.Set.Edited != "":
		return ""
	case m.Bootstrap == BootstrapCluster && !dataLost(m) && !m.Volume.Unbound:
		return "" // it could still start, with settings that name it as a member
	case m.Foreign:
		return "its volume has the data of another cluster, which is kept"
	case m.Volume.Lost:
		return "its data is lost: " + cmp.Or(m.Volume.Detail, "the data directory is empty, or its log is missing")
	case dataLost(m) && !m.Volume.Unbound, learner(m) && claimTerminating(m):
		return "its volume is deleted"
	case startObstacle(m) != "":
		return startObstacle(m)
	case !want.silentTooLong(m, now) || causedBySpec(want, seen, m):
		return ""
	case m.Maintenance != "", seen.Certificates != "" && !dataLost(m):
		return "" // its peers may refuse it for the Secret's problem, and a replacement could not start
	case m.Volume.Unbound:
		return fmt.Sprintf("its PersistentVolume has not existed for %s", want.replaceAfter())
	}
	if m.Volume.NodeLost != "" {
		return fmt.Sprintf("its volume is on the node %s, which no longer exists", m.Volume.NodeLost)
	}
	if m.Silence != "" {
		return fmt.Sprintf("it has not answered for %s, because %s", want.replaceAfter(), m.Silence)
	}
	return fmt.Sprintf("it has not answered for %s", want.replaceAfter())
}

// silentFrom is when the member's time to answer began. Kubernetes and earlier operators may have
// other clocks. A time in the future is by such a clock, and does not count. A clock that is behind
// or ahead replaces no member before this operator has waited for it, and waits no longer than twice.
// A new pod has the full time, and one that has terminated gives none: a node may reject each.
func silentFrom(m Member, now time.Time) time.Time {
	times := []time.Time{m.Since, m.Returned, m.Watched}
	if !m.Pod.Ended {
		times = append(times, m.Pod.Since)
	}
	var from time.Time
	for _, t := range times {
		if !t.After(now) {
			from = later(from, t)
		}
	}
	if from.IsZero() {
		return now
	}
	return from
}

// causedBySpec reports whether the spec keeps the member's pod from running: a replacement would
// fail in the same way. A member whose claim is being deleted never gets another spec. If its pod
// was created from a template that the StatefulSet no longer has, only its replacement can run.
func causedBySpec(want desired, seen World, m Member) bool {
	switch {
	case m.Volume.NodeLost != "":
		return false // no pod can use the volume
	case m.uncreated():
		return true
	}
	switch m.Pod.Trouble {
	case lifecycle.PodProblemImagePullBackOff, lifecycle.PodProblemContainerCannotStart:
		return m.Pod.OtherContainer == "" && (!m.Pod.Stale || !claimTerminating(m))
	case lifecycle.PodProblemUnschedulable:
		return learner(m) || causedByChange(want, seen, m)
	case lifecycle.PodProblemCrashLoopBackOff:
		return learner(m) || failsSinceChange(seen, m)
	}
	refuses := want.refuses(m) && !Volatile(want.EtcdCluster) && !claimTerminating(m)
	return refuses || want.canCorrect(seen, m)
}

// failsSinceChange reports whether the member has another spec or version than a serving member:
// it has not run since its change.
func failsSinceChange(seen World, m Member) bool {
	_, ok := seen.find(func(o Member) bool {
		return seen.servingVoter(o) && ours(o) && (o.Pod.Revision != m.Pod.Revision || o.Pod.Version != m.Pod.Version)
	})
	return ok
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// newLeader is the managed voter with the longest log, to which the leadership moves.
func newLeader(seen World, from Member) (Member, bool) {
	var candidates []Member
	for _, m := range seen.Members {
		if seen.servingVoter(m) && ours(m) && m.Name != from.Name {
			candidates = append(candidates, m)
		}
	}
	if len(candidates) == 0 {
		return Member{}, false
	}
	return slices.MaxFunc(candidates, func(a, b Member) int { return cmp.Compare(a.Index, b.Index) }), true
}

// unhealthyMember delays all changes while a listed member does not serve.
func unhealthyMember(want desired, seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return voter(m) && (!seen.serving(m) || !m.Joined) && !want.onlyReplaceable(m) && !want.answersUntilReplaced(seen, m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	if d := nodeInMaintenance(m); d.IsSet() {
		return d
	}
	if d := hindered(want, seen, m, now); d.IsSet() {
		d.Message += doomSentence(seen)
		return d
	}
	since := later(m.Since, m.Pod.Since)
	d := await(Serving, m, since, "MemberNotServing", "%s %s.%s%s", m.Name, waitSentence(m), certificateSentence(seen), doomSentence(seen))
	if end := silentFrom(m, now).Add(want.replaceAfter()); !since.IsZero() && now.Before(end) {
		return d.Until(end)
	}
	return d
}

// answersUntilReplaced reports that the member answers, that a container beside etcd keeps its pod
// from being ready, and that the pod cannot be recreated, because its claim is being deleted. A
// learner replaces it. Before etcd has learners, the replacement would cost the quorum.
func (g desired) answersUntilReplaced(seen World, m Member) bool {
	return g.joins.can(hasLearners) && claimTerminating(m) && m.Pod.OtherContainer != "" && m.Pod.Trouble == lifecycle.PodProblemNone && seen.answeringVoter(m)
}

// doomSentence names a member whose replacement waits, too; empty if there is none. etcd adds no
// member while a voter is not connected (server/etcdserver, mayAddMember).
func doomSentence(seen World) string {
	m, ok := seen.find(claimTerminating)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" Do not delete the pod of %s: its %s, and etcd adds no member before all others are connected.", m.Name, doom(m))
}

// certificateSentence is the reason that members may refuse each other; empty if their certificates are usable.
func certificateSentence(seen World) string {
	if seen.Certificates == "" {
		return ""
	}
	return " " + seen.Certificates
}

// waitSentence distinguishes an unavailable member from a new one that is only closed to
// clients. After a snapshot etcd may miss the answer to its publication, and asks again after
// its request timeout and two elections (server/etcdserver, publishV3).
func waitSentence(m Member) string {
	if m.Joined && m.Pod.Ready && m.Health == Unknown && m.Pod.Exposure == Hidden {
		return "has its data and its vote, and serves clients once etcd confirms its publication, usually within seven seconds"
	}
	if why := unavailableReason(m); why != "" {
		return why + "; Governor waits for it"
	}
	return "does not serve; Governor waits for it"
}

// removalCandidate is the member to remove when there are too many: first one that does not
// serve, then one whose objects are being deleted, then the newest follower.
func removalCandidate(seen World) (Member, bool) {
	if m, ok := seen.last(func(m Member) bool { return ourListed(m) && !seen.serving(m) }); ok {
		return m, true
	}
	if m, ok := seen.last(func(m Member) bool { return ourListed(m) && (claimTerminating(m) || obstructed(m)) && !m.Leads }); ok {
		return m, true
	}
	if m, ok := seen.last(func(m Member) bool { return ourListed(m) && claimTerminating(m) }); ok {
		return m, true // it leads, and its data is about to be deleted anyway
	}
	return seen.last(func(m Member) bool { return ourListed(m) && !m.Leads })
}

// needsLearners refuses to add a second voter without data. Until it has the data, the two have
// no quorum, and the member list could not even be changed back.
func needsLearners(v version) lifecycle.Decision {
	return lifecycle.Block("GrowthNeedsLearners", fmt.Sprintf(
		"A cluster of one member can only grow with learners, which etcd %s does not have. Set spec.version to 3.4 or newer first.", v))
}

func badCertificates(seen World) lifecycle.Decision {
	if seen.Certificates == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("CertificatesUnusable", seen.Certificates)
}

func unknownVersion(err error) lifecycle.Decision {
	return lifecycle.Block("UnknownVersion", fmt.Sprintf("spec.version: %s.", err))
}

// impossibleChange reports a declared change that cannot be made; all others are done.
func impossibleChange(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	to, err := target(want)
	if err != nil {
		return unknownVersion(err)
	}
	if why := refusal(present(want, seen), to); why != "" {
		return lifecycle.Block("VersionRefused", why+".")
	}
	return lifecycle.Decision{}
}
