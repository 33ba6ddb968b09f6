package etcd

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// layout is incremented when pods must be recreated after an upgrade of the operator. Any other
// change of their rendering waits for the next restart.
const layout = 1

// target is the declared version, or the chosen one.
func target(want *etcdv1.EtcdCluster) (version, error) {
	switch {
	case want.Spec.Version != "":
		return parse(want.Spec.Version)
	case want.Status.Version.Chosen != "":
		return parse(want.Status.Version.Chosen)
	}
	return parse(Newest)
}

// present is the oldest version that a member runs, or ran when it last answered. The version of
// a pod template does not count: it may never have run.
func present(want *etcdv1.EtcdCluster, seen World) version {
	var oldest version
	for _, m := range seen.Members {
		v, err := parse(ran(want, m))
		if err == nil && !KeptVolume(seen, m) && (oldest == version{} || compare(v, oldest) < 0) {
			oldest = v
		}
	}
	return oldest
}

func ran(want *etcdv1.EtcdCluster, m Member) string {
	if m.Version != "" || m.Unmanaged {
		return m.Version
	}
	return Remembered(want, m.Name).Version
}

// Remembered returns the status of the member as of its last answer.
func Remembered(want *etcdv1.EtcdCluster, name string) etcdv1.MemberStatus {
	for _, m := range want.Status.Members {
		if m.Name == name {
			return m
		}
	}
	return etcdv1.MemberStatus{}
}

// targetVersion is the version that the members get next: the target, or an intermediate
// release. It is the present version if the upgrade is refused, and zero if the cluster has
// formed and its version is unknown.
func targetVersion(want *etcdv1.EtcdCluster, seen World) version {
	from := present(want, seen)
	to, err := target(want)
	switch {
	case err != nil || refusal(from, to) != "":
		return from
	case !formed(want, seen):
		return to
	case from == version{}:
		return version{}
	}
	next := nextVersion(from, to)
	if next.minor >= newFormatOnly && waitsForSnapshot(want, seen) {
		return from
	}
	return next
}

// joining is the version that a new member gets: the oldest running one, which every cluster
// accepts. Without volumes it is the next one, since members are replaced instead of restarted.
func joining(want *etcdv1.EtcdCluster, seen World, next version) version {
	if v := present(want, seen); v != (version{}) && formed(want, seen) && !Volatile(want) {
		return v
	}
	return next
}

// Revision is a digest of the pod settings that users control. The operator's own part of the
// template is excluded, so that a new operator restarts nothing.
func Revision(want *etcdv1.EtcdCluster) string {
	spec := want.Spec
	spec.TLS.RevokeBefore = nil // it changes authorities, which have their own digest
	return lifecycle.Digest([]any{
		layout, spec.Image, spec.Repository, spec.Options, spec.Pod, spec.TLS, spec.ClusterDomain, volatileSize(want),
	})
}

// templateRevision identifies the inputs of a pod: the spec, and the authorities that it trusts,
// which etcd reads only at start.
func templateRevision(want *etcdv1.EtcdCluster, seen World) string {
	if seen.Trust == "" {
		return Revision(want)
	}
	return Revision(want) + "." + seen.Trust
}

// revisionsDiffer compares two template revisions. Temporarily unknown authorities count as
// equal.
func revisionsDiffer(a, b string) bool {
	spec, trust, _ := strings.Cut(a, ".")
	otherSpec, otherTrust, _ := strings.Cut(b, ".")
	return spec != otherSpec || trust != "" && otherTrust != "" && trust != otherTrust
}

// desired is the spec with the values derived from it, computed once per reconcile.
type desired struct {
	*etcdv1.EtcdCluster
	// revision and next are the template revision and version that a member's pod should have now.
	revision string
	next     version
	// newest is the newest version that a member ran; zero if none is known.
	newest version
	// lastOld is the only member that ran an older minor release than the target.
	lastOld string
	// joins is the version of a new member.
	joins version
	// room is the permitted number of members: spec.size, and one more while a serving member
	// is replaced. While all claims are being deleted, no member is too many.
	room int
	// rebalances reports whether room includes a member that moves to a better node.
	rebalances bool
	// targets37 reports whether the target version is 3.7 or newer.
	targets37 bool
}

func computeDesired(want *etcdv1.EtcdCluster, seen World) desired {
	g := desired{EtcdCluster: want, revision: templateRevision(want, seen), next: targetVersion(want, seen), room: int(want.Spec.Size)}
	g.newest, g.lastOld = newestRan(want, seen), lastOld(want, seen)
	g.joins, g.targets37 = joining(want, seen, g.next), targets37(want, seen)
	if to, err := target(want); err == nil && g.joins == (version{}) {
		g.joins = to // the declaration is the only source
	}
	if allTerminating(seen) {
		g.room = max(g.room, seen.count(ourListed)) + 1 // one that lasts joins before any is removed
	} else if _, ok := seen.find(func(m Member) bool { return voter(m) && g.mustReplace(m) }); ok {
		g.room++
	} else if g.rebalances = rebalances(want, seen) && g.joins.can(hasLearners); g.rebalances {
		g.room++
	}
	return g
}

// allTerminating reports that no voter's data outlasts its pod, because all claims are being deleted.
// A voter that was added without being a learner first, as before 3.4, has no data until it has joined.
func allTerminating(seen World) bool {
	_, lasts := seen.find(func(m Member) bool {
		return ourListed(m) && voter(m) && m.Joined && !dataLost(m) && !claimTerminating(m)
	})
	return !lasts && seen.count(claimTerminating) > 0
}

// mustReplace reports whether the member is removed as soon as its replacement serves, because a
// restart would lose its data.
func (g desired) mustReplace(m Member) bool {
	return ourListed(m) && (claimTerminating(m) || Volatile(g.EtcdCluster) && g.isOutdated(m))
}

// isOutdated reports whether a listed member has a spec or version other than desired. A member
// whose claim is being deleted is replaced anyway, and an obstructed one could not start again.
func (g desired) isOutdated(m Member) bool {
	return ourListed(m) && !claimTerminating(m) && !obstructed(m) && g.mismatches(m)
}

// hasOldAuthorities reports whether a member differs only in the authorities that it runs with.
func (g desired) hasOldAuthorities(m Member) bool {
	return g.isOutdated(m) && g.difference(m) == authoritiesChanged
}

// version is what a member has or had. What it ran comes before the note on its volume, which users can
// edit: no policy judges a version that the note alone gives. The note of a member that never answered
// counts up to the newest version that any member ran. A member without a version gets that of a new one.
func (g desired) version(m Member) version {
	if v, err := parse(m.Set.Version); err == nil {
		return v
	}
	noted, err := parse(m.Volume.Version)
	if v, unknown := parse(ran(g.EtcdCluster, m)); unknown == nil {
		if err == nil && m.Name == g.lastOld && g.endsUpgrade(v, noted) {
			return noted // its data may be of it
		}
		return v
	}
	if err == nil && (g.newest == version{} || compare(noted, g.newest) <= 0) {
		return noted
	}
	return g.joins
}

// endsUpgrade reports that the noted version is newer than the one that the member ran, and not newer
// than the declared one.
func (g desired) endsUpgrade(ran, noted version) bool {
	to, err := target(g.EtcdCluster)
	return err == nil && compare(noted, ran) > 0 && compare(noted, to) <= 0
}

// judgedStart is a change, and no repair, if it completes the upgrade of the last old member: policies
// judge it as they judge the restart that a crash interrupted. It is only disruptive: the gate KeepsQuorum
// lets no irreversible step pass while a member does not serve, and only the start brings it back.
func (g desired) judgedStart(m Member, s lifecycle.Step) lifecycle.Step {
	v, err := parse(ran(g.EtcdCluster, m))
	if err == nil && compare(g.version(m), v) > 0 && !m.Set.Exists {
		s.Intent, s.Cause = lifecycle.IntentChange, lifecycle.CauseSpecChange
		return class(s, lifecycle.ClassDisruptive)
	}
	return s
}

// lastOld is the only member that ran a minor release older than the declared one; empty if several did.
func lastOld(want *etcdv1.EtcdCluster, seen World) string {
	to, err := target(want)
	old := func(m Member) bool {
		v, unknown := parse(ran(want, m))
		return unknown == nil && v.minor < to.minor
	}
	if m, ok := seen.find(old); err == nil && ok && seen.count(old) == 1 {
		return m.Name
	}
	return ""
}

// newestRan is the newest version that a member runs, or ran when it last answered.
func newestRan(want *etcdv1.EtcdCluster, seen World) (newest version) {
	for _, m := range seen.Members {
		if v, err := parse(ran(want, m)); err == nil && compare(v, newest) > 0 {
			newest = v
		}
	}
	return newest
}

// after is the version that the member gets next: its own if no other is known to be right. A
// member that has not joined yet gets the leader's log, so it has the version of a new member.
func (g desired) after(m Member) version {
	switch own := g.version(m); {
	case g.next == (version{}):
		return own
	case learner(m) && !m.Joined && own.minor <= g.joins.minor && g.joins.minor < g.next.minor:
		return g.joins
	}
	return g.readable(m, g.next)
}

// mismatches compares the template and the pod with the desired state. A pod that is being
// deleted is recreated from the template, so only the template counts.
func (g desired) mismatches(m Member) bool {
	next := g.after(m)
	differs := func(revision, v string, s Snapshots) bool {
		tooFewSnapshots := m.OldLog && s == Usual && g.snapshots(next) == Frequent
		return revisionsDiffer(revision, g.revision) || v != next.String() || tooFewSnapshots
	}
	return m.Set.Exists && (differs(m.Set.Revision, m.Set.Version, m.Set.Snapshots) ||
		m.Pod.Exists && !m.Pod.Leaving && differs(m.Pod.Revision, m.Pod.Version, m.Pod.Snapshots))
}

// difference is the reason for restarting an outdated member.
func (g desired) difference(m Member) string {
	switch {
	case m.Version != g.after(m).String():
		return versionChanged
	case g.hasOtherSpec(m):
		return specChanged
	case m.OldLog && m.Pod.Snapshots == Usual && g.snapshots(g.after(m)) == Frequent:
		return "SnapshotNeeded"
	}
	return authoritiesChanged
}

// hasOtherSpec reports whether the member's StatefulSet or pod has the template of another spec.
func (g desired) hasOtherSpec(m Member) bool {
	spec, _, _ := strings.Cut(g.revision, ".")
	return revisionsDiffer(spec, m.Set.Revision) || revisionsDiffer(spec, m.Pod.Revision)
}

// Reasons for restarting a member.
const (
	authoritiesChanged = "AuthoritiesChanged"
	specChanged        = "SpecChanged"
	versionChanged     = "VersionChanged"
)

// Volatile reports whether the data is deleted with its pod.
func Volatile(want *etcdv1.EtcdCluster) bool {
	return want.Spec.Storage.Medium == etcdv1.MediumMemory || want.Spec.Storage.Medium == etcdv1.MediumEphemeral
}

func volatileSize(want *etcdv1.EtcdCluster) string {
	if Volatile(want) && want.Spec.Storage.Size != nil {
		return want.Spec.Storage.Size.String()
	}
	return ""
}

func isDeleted(want *etcdv1.EtcdCluster) bool { return want.DeletionTimestamp != nil }

// bootstrapState returns status.bootstrap; it is empty before the first status write.
func bootstrapState(want *etcdv1.EtcdCluster) etcdv1.BootstrapStatus {
	if want.Status.Bootstrap == nil {
		return etcdv1.BootstrapStatus{}
	}
	return *want.Status.Bootstrap
}

// formed reports whether the cluster exists: a quorum answers now, or answered earlier. A single
// member that answers is not enough, because the others may still have to start. Ready pods are
// enough, also where a NetworkPolicy keeps the operator out: their probe is a read that needs a quorum.
func formed(want *etcdv1.EtcdCluster, seen World) bool {
	first := bootstrapState(want)
	return first.Formed || seen.Listed || seen.count(readsLinearizably) > len(first.InitialMembers)/2
}

// readsLinearizably reports that the pod has answered the kubelet's linearizable read.
func readsLinearizably(m Member) bool {
	v, err := parse(m.Pod.Version)
	return err == nil && v.can(v3Health) && m.Pod.Ready && !m.Pod.Leaving
}

// initial reports whether the member is one of the first members.
func initial(want *etcdv1.EtcdCluster, name string) bool {
	return slices.Contains(bootstrapState(want).InitialMembers, name)
}

// Number is the number of a member, or -1 if the name has none.
func Number(name string) int64 {
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.ParseInt(name[i+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func memberName(want *etcdv1.EtcdCluster, number int64) string {
	return fmt.Sprintf("%s-%d", want.Name, number)
}

// IsMemberName reports whether Governor gives a member of the cluster this name.
func IsMemberName(want *etcdv1.EtcdCluster, name string) bool {
	n := Number(name)
	return n >= 0 && name == memberName(want, n)
}

// MayHaveAdded reports whether Governor added a member of this name, or was about to when it
// last wrote the status. Numbers are assigned in ascending order.
func MayHaveAdded(want *etcdv1.EtcdCluster, name string) bool {
	return IsMemberName(want, name) && Number(name) <= max(bootstrapState(want).NextMember, int64(want.Spec.Size))
}

// nextNumber is a number that no present or former member has had.
func nextNumber(want *etcdv1.EtcdCluster, seen World) int64 {
	next := bootstrapState(want).NextMember
	for _, m := range seen.Members {
		if !m.Unmanaged {
			next = max(next, Number(m.Name)+1)
		}
	}
	return next
}

// token is unique to one cluster object: a cluster that is deleted and recreated has another
// UID, so members of the two never talk to each other.
func token(want *etcdv1.EtcdCluster) string {
	if t := bootstrapState(want).Token; t != "" {
		return t
	}
	return fmt.Sprintf("%s-%s", want.Name, uidHash(want))
}

// uidHash is a short hash of the UID.
func uidHash(want *etcdv1.EtcdCluster) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(want.UID))
	return strconv.FormatUint(sum.Sum64()>>24, 36)
}
