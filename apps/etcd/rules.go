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

// forming starts every initial member at once and waits for the cluster.
func forming(want desired, seen World, now time.Time) lifecycle.Decision {
	if formed(want.EtcdCluster, seen) || want.Status.Memory == nil {
		return lifecycle.Decision{}
	}
	if _, err := target(want.EtcdCluster); err != nil {
		return unknownVersion(err)
	}
	return lifecycle.First(
		badCertificates(seen),
		obstructedMember(seen),
		startInitial(want, seen),
		failedChange(want, seen),
		endedPod(want, seen),
		hinderedAny(want, seen, now),
		await(Formed, Member{Name: want.Name}, time.Time{}, "Forming", "%d members start and agree on a cluster.",
			len(memory(want.EtcdCluster).InitialMembers)),
	)
}

func startInitial(want desired, seen World) lifecycle.Decision {
	var missing []string
	for _, name := range memory(want.EtcdCluster).InitialMembers {
		if m, _ := seen.named(name); !m.Set.Exists {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(formCluster(want, missing))
}

// failedChange gives a member whose pod cannot run, and was made from another spec,
// the present one. It costs nothing, since the member does not serve; but without a
// volume the pod has the data, and is only made anew if it never had any, or if it was
// made from an edited template and the others have a quorum (sim seed 3219).
func failedChange(want desired, seen World) lifecycle.Decision {
	for _, m := range seen.Members {
		hopeless := m.Pod.Trouble != lifecycle.PodProblemNone && m.Set.Exists && !seen.serving(m) && !dataLost(m) && !claimTerminating(m) && !obstructed(m)
		spared := seen.Listed && m.Pod.Stale && m.Pod.Trouble != lifecycle.PodProblemCrashLoopBackOff
		if Volatile(want.EtcdCluster) && !spared && (!mayBootstrap(m) || m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff) {
			continue
		}
		if hopeless && (want.mismatches(m) || m.Pod.Stale) {
			return lifecycle.Proceed(repair(restart(want, m, want.after(m), "SpecCorrected",
				"%s could not run (%s); it is started with the present spec.", m.Name, m.Pod.Trouble)))
		}
	}
	return lifecycle.Decision{}
}

// strippedMember brings back a StatefulSet that somebody deleted, also while no
// quorum says who is a member: the volume and the status do.
func strippedMember(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return !seen.Listed && m.Volume.Exists && !m.Volume.Terminating && !m.Set.Exists && !obstructed(m) && mayBelong(want.EtcdCluster, m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(repair(start(want, m, want.version(m), "StatefulSetMissing",
		"%s has its volume but no StatefulSet; it is made again.", m.Name)))
}

// mayBelong says that the member was in the list when it was last known, or that
// nothing is remembered. To start a member that is not is harmless: it has its data,
// and the others refuse it.
func mayBelong(want *etcdv1.EtcdCluster, m Member) bool {
	known := false
	for _, old := range want.Status.Members {
		known = known || old.Role != ""
	}
	return !known || remembered(want, m.Name).Role != ""
}

func endedPod(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return m.Pod.Ended && !m.Pod.Leaving && m.Set.Exists && !obstructed(m) })
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(repair(restart(want, m, want.after(m), "PodEnded",
		"The pod of %s has ended and would not run again.", m.Name)))
}

// votersWithData are the voters as last known, and those of them that have their data.
func votersWithData(want *etcdv1.EtcdCluster, seen World) (voters, kept []string) {
	for _, m := range want.Status.Members {
		if m.Role == roleLeader || m.Role == roleFollower {
			voters = append(voters, m.Name)
		}
	}
	if len(voters) == 0 {
		voters = memory(want).InitialMembers
	}
	if len(voters) == 0 { // what was remembered was removed from the status
		for _, m := range residents(want, seen) {
			voters = append(voters, m.Name)
		}
	}
	for _, name := range voters {
		if m, ok := seen.named(name); ok && !dataLost(m) && !m.Volume.Spoiled && (m.Unmanaged || m.Volume.Exists) {
			kept = append(kept, name)
		}
	}
	return voters, kept
}

func quorumLost(voters, kept []string) lifecycle.Decision {
	has := "none has its data"
	if len(kept) > 0 {
		has = "only " + strings.Join(kept, ", ") + " have their data"
	}
	return lifecycle.Block(reasonDataLost, fmt.Sprintf(
		"Of the %d voters %s, and %d are needed. Nothing is deleted. If a lost volume can be brought back, do that and the cluster "+
			"goes on by itself. Otherwise create another EtcdCluster and write your data into it as a client does; "+
			"etcdutl snapshot restore makes a snapshot, or the database on a volume that is left, readable.",
		len(voters), has, len(voters)/2+1))
}

// joiningMember promotes a learner when it has caught up.
func joiningMember(want desired, seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && learner(m) })
	if !ok {
		return lifecycle.Decision{}
	}
	if cause := lossCause(want, seen, m, now); cause != "" {
		return lifecycle.Proceed(repair(remove(m, "LearnerDead", "%s cannot join and is replaced: %s.", m.Name, cause)))
	}
	if caughtUp(seen, m) || inSync(seen, m) {
		s := with(step(Promote, m, "LearnerCaughtUp", "%s has caught up and gets a vote.", m.Name), ArgID, hex(m.ID))
		s.Intent = lifecycle.IntentRepair // it finishes what was begun, also in a freeze: repairs come after it
		return lifecycle.Proceed(s)
	}
	if d := hindered(want, seen, m, now); d.IsSet() {
		return d
	}
	return await(CaughtUp, m, m.Pod.Since, "LearnerCatchingUp", "%s copies the data before it gets a vote.", m.Name)
}

// caughtUp is etcd's own measure: nine tenths of the leader's log
// (server/etcdserver, readyPercentThreshold).
func caughtUp(seen World, m Member) bool {
	l, ok := seen.leader()
	return ok && m.Joined && m.Health == Healthy && m.Index*10 >= l.Index*9
}

// inSync says the same of a learner that does not serve clients yet, which after a
// snapshot takes etcd seven seconds: it has done the kubelet's read, for which it had
// to have all that the leader had. Whether it has is up to the leader in the end, who
// refuses to promote it otherwise. Should it die at once, the others are enough.
func inSync(seen World, m Member) bool {
	v, err := parse(m.Pod.Version)
	reads := err == nil && v.can(v3Health) && m.Pod.Ready && !m.Pod.Leaving
	return reads && m.Joined && seen.change(m.Name, promoted).missing() == 0
}

// lossCause is why a member will not come back, empty if it may.
func lossCause(want desired, seen World, m Member, now time.Time) string {
	silent := m.Health != Healthy && !m.Pod.Ready && !m.Since.IsZero()
	switch {
	case m.Unmanaged || !listed(m) || m.Set.Edited != "":
		return ""
	case m.Bootstrap == BootstrapCluster && !dataLost(m):
		return "" // it could still begin, with settings in which it is a member
	case m.Volume.Lost:
		return "its data is lost: " + cmp.Or(m.Volume.Detail, "the data directory is empty")
	case dataLost(m), learner(m) && claimTerminating(m):
		return "its volume is gone"
	case nevermore(m) != "":
		return nevermore(m)
	case !silent || now.Before(later(later(m.Since, m.Pod.Since), m.Returned).Add(want.replaceAfter())) || bySpec(want, seen, m):
		return ""
	case m.Maintenance != "":
		return ""
	}
	if m.Silence != "" {
		return fmt.Sprintf("it has not answered for %s, for %s", want.replaceAfter(), m.Silence)
	}
	return fmt.Sprintf("it has not answered for %s", want.replaceAfter())
}

// bySpec says that the member's pod is hindered by what the spec says: another
// member would fare no better.
func bySpec(want desired, seen World, m Member) bool {
	if m.Set.Problem != "" && !m.Pod.Exists {
		return true
	}
	switch m.Pod.Trouble {
	case lifecycle.PodProblemImagePullBackOff, lifecycle.PodProblemContainerCannotStart:
		return true
	case lifecycle.PodProblemUnschedulable:
		return learner(m) || changeFailed(want, seen, m, m.Pod.Since.Add(want.replaceAfter()))
	case lifecycle.PodProblemCrashLoopBackOff:
		return learner(m) || firstVictim(seen, m)
	}
	return want.mismatches(m) && !Volatile(want.EtcdCluster)
}

// firstVictim says that the member runs another spec or version than one that
// serves: it does not run since it was changed.
func firstVictim(seen World, m Member) bool {
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

// newLeader is who takes over from the leader: the voter of ours that is furthest,
// and already has what the others are to have.
func newLeader(seen World, from Member) (Member, bool) {
	var heirs []Member
	for _, m := range seen.Members {
		if seen.servingVoter(m) && ours(m) && m.Name != from.Name {
			heirs = append(heirs, m)
		}
	}
	if len(heirs) == 0 {
		return Member{}, false
	}
	return slices.MaxFunc(heirs, func(a, b Member) int { return cmp.Compare(a.Index, b.Index) }), true
}

// unhealthyMember lets no wish begin while a member of the list does not serve.
func unhealthyMember(want desired, seen World, now time.Time) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return voter(m) && (!seen.serving(m) || !m.Joined) })
	if !ok {
		return lifecycle.Decision{}
	}
	if d := maintained(m); d.IsSet() {
		return d
	}
	if d := hindered(want, seen, m, now); d.IsSet() {
		return d
	}
	since := later(m.Since, m.Pod.Since)
	d := await(Serving, m, since, "MemberNotServing", "%s %s.", m.Name, absence(m))
	if !since.IsZero() && now.Before(since.Add(want.replaceAfter())) {
		return d.Until(since.Add(want.replaceAfter()))
	}
	return d
}

// absence tells a member that is away from a new one that only clients have to wait for.
// After a snapshot etcd may miss the answer to its publication, and ask again after its
// request timeout and two elections (server/etcdserver, publishV3).
func absence(m Member) string {
	if m.Joined && m.Pod.Ready && m.Health == Unknown && m.Pod.Exposure == Hidden {
		return "has its data and its vote, and serves clients when etcd has heard that it is published, as a rule within seven seconds"
	}
	if why := whyAway(m); why != "" {
		return why + "; it is waited for"
	}
	return "does not serve; it is waited for"
}

// removalCandidate is who goes when there are too many: the sick first, then those whose
// objects are being deleted, then the newest follower.
func removalCandidate(seen World) (Member, bool) {
	if m, ok := seen.last(func(m Member) bool { return ourListed(m) && !seen.serving(m) }); ok {
		return m, true
	}
	if m, ok := seen.last(func(m Member) bool { return ourListed(m) && (claimTerminating(m) || obstructed(m)) && !m.Leads }); ok {
		return m, true
	}
	if m, ok := seen.last(func(m Member) bool { return ourListed(m) && claimTerminating(m) }); ok {
		return m, true // it leads, and its data is about to go all the same
	}
	return seen.last(func(m Member) bool { return ourListed(m) && !m.Leads })
}

// needsLearners refuses to add a second voter that has no data yet: until it has,
// the two have no quorum, and not even the member list could be changed back.
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

// impossibleWish tells what is declared and cannot be; everything else has been
// done.
func impossibleWish(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	to, err := target(want)
	if err != nil {
		return unknownVersion(err)
	}
	if why := refusal(present(want, seen), to); why != "" {
		return lifecycle.Block("VersionRefused", why+".")
	}
	return lifecycle.Decision{}
}
