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

// layout is counted up when pods must be made anew after an upgrade of the
// operator. Any other change of how they are rendered waits for the next restart.
const layout = 1

// target is the version that is wanted in the end.
func target(want *etcdv1.EtcdCluster) (version, error) {
	switch {
	case want.Spec.Version != "":
		return parse(want.Spec.Version)
	case want.Status.Version.Chosen != "":
		return parse(want.Status.Version.Chosen)
	}
	return parse(Newest)
}

// present is the oldest version among those that members run, or ran when they
// last answered. What a pod was made for does not count: it may never have run.
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

// remembered is what the status says about the member since it last answered.
func remembered(want *etcdv1.EtcdCluster, name string) etcdv1.MemberStatus {
	for _, m := range want.Status.Members {
		if m.Name == name {
			return m
		}
	}
	return etcdv1.MemberStatus{}
}

// targetVersion is the version that the members are to have next: the target, or a stop
// on the way to it. Where the way is barred it is the present one. It is nothing if
// the cluster has formed and nobody knows with which version.
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
	if next.minor >= newFormatOnly && halted(want, seen) {
		return from
	}
	return next
}

// joining is the version that a new member gets: the oldest that runs, which every
// cluster accepts; without volumes the next one, since members are not restarted.
func joining(want *etcdv1.EtcdCluster, seen World, next version) version {
	if v := present(want, seen); v != (version{}) && formed(want, seen) && !Volatile(want) {
		return v
	}
	return next
}

// Revision is a digest of what users can set on pods. The operator's own share of
// the template is not in it, so that a new operator restarts nothing.
func Revision(want *etcdv1.EtcdCluster) string {
	spec := want.Spec
	spec.TLS.RevokeBefore = nil // it changes authorities, and those have a digest of their own
	return lifecycle.Digest([]any{
		layout, spec.Image, spec.Repository, spec.Options, spec.Pod, spec.TLS, spec.ClusterDomain, volatileSize(want),
	})
}

// dressing is what a pod is made from: the spec, and the authorities that it trusts,
// which etcd reads only as it starts.
func dressing(want *etcdv1.EtcdCluster, seen World) string {
	if seen.Trust == "" {
		return Revision(want)
	}
	return Revision(want) + "." + seen.Trust
}

// redressed says that the two differ. Authorities that are not known for the moment
// are no difference.
func redressed(a, b string) bool {
	spec, trust, _ := strings.Cut(a, ".")
	otherSpec, otherTrust, _ := strings.Cut(b, ".")
	return spec != otherSpec || trust != "" && otherTrust != "" && trust != otherTrust
}

// desired is what is wanted, with what follows from it worked out once a turn.
type desired struct {
	*etcdv1.EtcdCluster
	// revision and next are what a member's pod is to have now.
	revision string
	next     version
	// joins is the version that a new member gets.
	joins version
	// room is how many members there may be: one more than wanted while a member that
	// still serves is replaced.
	room int
	// rebalances says that room is one more because a member is moved to a better place.
	rebalances bool
	// beyond says that the members are to have 3.7 or newer in the end.
	beyond bool
}

func computeDesired(want *etcdv1.EtcdCluster, seen World) desired {
	g := desired{EtcdCluster: want, revision: dressing(want, seen), next: targetVersion(want, seen), room: int(want.Spec.Size)}
	g.joins, g.beyond = joining(want, seen, g.next), beyond(want, seen)
	if to, err := target(want); err == nil && g.joins == (version{}) {
		g.joins = to // nobody knows better than the user
	}
	if _, ok := seen.find(func(m Member) bool { return voter(m) && g.replaces(m) }); ok {
		g.room++
	} else if g.rebalances = rebalances(want, seen) && g.joins.can(hasLearners); g.rebalances {
		g.room++
	}
	return g
}

// replaces says that a member goes as soon as another serves in its place: a restart
// would lose its data.
func (g desired) replaces(m Member) bool {
	return ourListed(m) && (claimTerminating(m) || Volatile(g.EtcdCluster) && g.outdates(m))
}

// outdates says that a member of the list has another spec or version than it
// should. A doomed one is replaced anyway, and an obstructed one could not start again.
func (g desired) outdates(m Member) bool {
	return ourListed(m) && !claimTerminating(m) && !obstructed(m) && g.mismatches(m)
}

// distrusts says that a member runs with other authorities than it should.
func (g desired) distrusts(m Member) bool {
	return g.outdates(m) && g.difference(m) == authoritiesChanged
}

// version is what a member has or had, so that it never starts with one that is
// older than its data; a member that had none gets that of who joins.
func (g desired) version(m Member) version {
	for _, s := range []string{m.Set.Version, m.Volume.Version, ran(g.EtcdCluster, m)} {
		if v, err := parse(s); err == nil {
			return v
		}
	}
	return g.joins
}

// after is the version that the member has next: its own if no other is known to be
// right.
func (g desired) after(m Member) version {
	if g.next != (version{}) {
		return g.readable(m, g.next)
	}
	return g.version(m)
}

// mismatches looks at the template and at the pod; a pod that is being deleted will
// be made anew from the template.
func (g desired) mismatches(m Member) bool {
	next := g.after(m)
	differs := func(revision, v string, s Snapshots) bool {
		rarer := m.OldLog && s == Usual && g.snapshots(next) == Frequent
		return redressed(revision, g.revision) || v != next.String() || rarer
	}
	return m.Set.Exists && (differs(m.Set.Revision, m.Set.Version, m.Set.Snapshots) ||
		m.Pod.Exists && !m.Pod.Leaving && differs(m.Pod.Revision, m.Pod.Version, m.Pod.Snapshots))
}

// difference is the reason why an outdated member is restarted.
func (g desired) difference(m Member) string {
	spec, _, _ := strings.Cut(g.revision, ".")
	switch {
	case m.Version != g.after(m).String():
		return "VersionChanged"
	case redressed(spec, m.Set.Revision) || redressed(spec, m.Pod.Revision):
		return "SpecChanged"
	case m.OldLog && m.Pod.Snapshots == Usual && g.snapshots(g.after(m)) == Frequent:
		return "SnapshotNeeded"
	}
	return authoritiesChanged
}

const authoritiesChanged = "AuthoritiesChanged"

// Volatile says that data lives only as long as its pod.
func Volatile(want *etcdv1.EtcdCluster) bool {
	return want.Spec.Storage.Medium == etcdv1.Memory || want.Spec.Storage.Medium == etcdv1.Ephemeral
}

func volatileSize(want *etcdv1.EtcdCluster) string {
	if Volatile(want) && want.Spec.Storage.Size != nil {
		return want.Spec.Storage.Size.String()
	}
	return ""
}

func leaving(want *etcdv1.EtcdCluster) bool { return want.DeletionTimestamp != nil }

// memory is what has been written down; nothing at the beginning of a life.
func memory(want *etcdv1.EtcdCluster) etcdv1.Memories {
	if want.Status.Memory == nil {
		return etcdv1.Memories{}
	}
	return *want.Status.Memory
}

// formed says that the cluster has come into being: a quorum has answered, now or
// ever. That some member answers is not enough, the others may still have to start.
func formed(want *etcdv1.EtcdCluster, seen World) bool {
	return memory(want).Formed || seen.Listed
}

// initial says that the cluster begins with the member.
func initial(want *etcdv1.EtcdCluster, name string) bool {
	return slices.Contains(memory(want).InitialMembers, name)
}

// Number is a member's number, -1 if the name has none.
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

// IsMemberName says that Governor would give a member of the cluster this name.
func IsMemberName(want *etcdv1.EtcdCluster, name string) bool {
	n := Number(name)
	return n >= 0 && name == memberName(want, n)
}

// MayHaveAdded says that Governor has added a member of this name, or was about to when
// the status was last written. Numbers are given in their order.
func MayHaveAdded(want *etcdv1.EtcdCluster, name string) bool {
	return IsMemberName(want, name) && Number(name) <= max(memory(want).NextMember, int64(want.Spec.Size))
}

// nextNumber is one that no member, living or dead, has had.
func nextNumber(want *etcdv1.EtcdCluster, seen World) int64 {
	next := memory(want).NextMember
	for _, m := range seen.Members {
		if !m.Unmanaged {
			next = max(next, Number(m.Name)+1)
		}
	}
	return next
}

// token is unique to an incarnation: a cluster that is deleted and made again has
// another UID, so members of the two never talk to each other.
func token(want *etcdv1.EtcdCluster) string {
	if t := memory(want).Token; t != "" {
		return t
	}
	return fmt.Sprintf("%s-%s", want.Name, incarnation(want))
}

// incarnation is the UID in short.
func incarnation(want *etcdv1.EtcdCluster) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(want.UID))
	return strconv.FormatUint(sum.Sum64()>>24, 36)
}
