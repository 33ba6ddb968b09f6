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
		if err == nil && (oldest == version{} || compare(v, oldest) < 0) {
			oldest = v
		}
	}
	return oldest
}

func ran(want *etcdv1.EtcdCluster, m Member) string {
	if m.Version != "" || m.Unmanaged {
		return m.Version
	}
	return remembered(want, m.Name).Version
}

// remembered returns the status of the member as of its last answer.
func remembered(want *etcdv1.EtcdCluster, name string) etcdv1.MemberStatus {
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
func allTerminating(seen World) bool {
	_, lasts := seen.find(func(m Member) bool { return ourListed(m) && voter(m) && !claimTerminating(m) })
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

// version is what a member has or had, so that it never starts with a version older than its
// data. A member without a version gets that of a new member.
func (g desired) version(m Member) version {
	for _, s := range []string{m.Set.Version, m.Volume.Version, ran(g.EtcdCluster, m)} {
		if v, err := parse(s); err == nil {
			return v
		}
	}
	return g.joins
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
	spec, _, _ := strings.Cut(g.revision, ".")
	switch {
	case m.Version != g.after(m).String():
		return "VersionChanged"
	case revisionsDiffer(spec, m.Set.Revision) || revisionsDiffer(spec, m.Pod.Revision):
		return "SpecChanged"
	case m.OldLog && m.Pod.Snapshots == Usual && g.snapshots(g.after(m)) == Frequent:
		return "SnapshotNeeded"
	}
	return authoritiesChanged
}

const authoritiesChanged = "AuthoritiesChanged"

// Volatile reports whether the data is deleted with its pod.
func Volatile(want *etcdv1.EtcdCluster) bool {
	return want.Spec.Storage.Medium == etcdv1.Memory || want.Spec.Storage.Medium == etcdv1.Ephemeral
}

func volatileSize(want *etcdv1.EtcdCluster) string {
	if Volatile(want) && want.Spec.Storage.Size != nil {
		return want.Spec.Storage.Size.String()
	}
	return ""
}

func isDeleted(want *etcdv1.EtcdCluster) bool { return want.DeletionTimestamp != nil }

// bootstrapState returns status.memory; it is empty before the first status write.
func bootstrapState(want *etcdv1.EtcdCluster) etcdv1.Memories {
	if want.Status.Memory == nil {
		return etcdv1.Memories{}
	}
	return *want.Status.Memory
}

// formed reports whether the cluster exists: a quorum answers now, or answered earlier. A single
// member that answers is not enough, because the others may still have to start.
func formed(want *etcdv1.EtcdCluster, seen World) bool {
	return bootstrapState(want).Formed || seen.Listed
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
