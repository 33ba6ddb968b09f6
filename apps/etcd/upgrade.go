package etcd

import (
	"fmt"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// etcd before 3.6 writes entries of the old API into its log, such as a member's first
// publication. 3.6 reads them, 3.7 panics (server/etcdserver, applyEntryNormal of
// 3.6 and apply.Apply of 3.7). A member starts from its last snapshot and applies the log
// after it. A member may therefore get 3.7 once its snapshot covers the older entries.
//
// In 3.6 the storage version shows that the member has applied the change of the cluster's
// version to 3.6. No older release wrote entries after that. A member that takes a snapshot at
// every second entry then covers all earlier entries.
const (
	readsOldEntries = 6
	newFormatOnly   = 7
)

// Snapshots is how often a member writes a snapshot of its log.
type Snapshots string

// A member has its usual count, or takes a snapshot at every second entry.
const (
	Usual    Snapshots = ""
	Frequent Snapshots = "Frequent"
)

// OldLog reports that 3.7 may be unable to read the member's log. A member that a Restart moved
// to 3.7 had a snapshot, unless its termination message shows otherwise.
func OldLog(want *etcdv1.EtcdCluster, m Member, storageVersion, lastWords string) bool {
	if first, err := parse(bootstrapState(want).FirstVersion); err == nil && first.minor >= readsOldEntries {
		return false
	}
	if v, err := parse(m.Set.Version); err == nil && v.minor >= newFormatOnly {
		return cannotRead(lastWords)
	}
	storage, err := parse(storageVersion)
	return err != nil || storage.minor < readsOldEntries || m.Pod.Snapshots != Frequent
}

// cannotRead reports that 3.7 panicked at an entry of the old API.
func cannotRead(lastWords string) bool {
	lastWords = fatalLines(lastWords)
	return strings.Contains(lastWords, "unmarshal should never fail") || strings.Contains(lastWords, "pbutil.MustUnmarshalMessage(")
}

// SnapshotCoversOldLog promises that no member moves to 3.7 that would panic at an entry of an
// older release.
var SnapshotCoversOldLog = lifecycle.Gate[*etcdv1.EtcdCluster, World]{
	Name: "SnapshotCoversOldLog",
	Violation: func(_ *etcdv1.EtcdCluster, w World) int {
		return w.count(func(m Member) bool { return m.OldLog && runs37(m) })
	},
	Message: func(_ *etcdv1.EtcdCluster, _, _ World, s lifecycle.Step) string {
		return fmt.Sprintf("etcd 3.7 cannot read entries that a release before 3.6 wrote into the log of %s. "+
			"It passes when a snapshot of %s covers them.", s.Target, s.Target)
	},
}

func runs37(m Member) bool {
	v, err := parse(planned(m))
	return err == nil && ours(m) && v.minor >= newFormatOnly
}

// targets37 reports that the target version is 3.7 or newer.
func targets37(want *etcdv1.EtcdCluster, seen World) bool {
	to, err := target(want)
	return err == nil && to.minor >= newFormatOnly && refusal(present(want, seen), to) == ""
}

// readable is the next version for the member: 3.6 as long as 3.7 cannot read its log.
func (g desired) readable(m Member, next version) version {
	if !m.OldLog || next.minor < newFormatOnly {
		return next
	}
	if own := g.version(m); own.minor == readsOldEntries {
		return own
	}
	return version{next.major, readsOldEntries, newest[readsOldEntries]}
}

// snapshots is the snapshot frequency of a member at the version: frequent before an upgrade to
// 3.7.
func (g desired) snapshots(v version) Snapshots {
	first, err := parse(bootstrapState(g.EtcdCluster).FirstVersion)
	if g.targets37 && v.minor == readsOldEntries && (err != nil || first.minor < readsOldEntries) {
		return Frequent
	}
	return Usual
}

// snapshotPending waits until the members' snapshots cover the entries of older releases.
func snapshotPending(want desired, seen World) lifecycle.Decision {
	old := func(m Member) bool { return ourListed(m) && m.OldLog && m.Set.Snapshots == Frequent }
	m, ok := seen.find(old)
	if !ok || !want.targets37 {
		return lifecycle.Decision{}
	}
	return await(SnapshotTaken, Member{Name: want.Name}, m.Pod.Since, "TakingSnapshot",
		"etcd 3.7 cannot read log entries of a release before 3.6; %s is taking a snapshot that covers them.", m.Name)
}

// waitsForSnapshot reports that members without volumes are not replaced with 3.7 yet: a leader
// of 3.6 would send its log to them. Once one of them runs 3.7, no leader does.
func waitsForSnapshot(want *etcdv1.EtcdCluster, seen World) bool {
	_, begun := seen.find(func(m Member) bool { return ourListed(m) && runs37(m) && !m.OldLog })
	_, old := seen.find(func(m Member) bool { return ourListed(m) && m.OldLog })
	return Volatile(want) && old && !begun
}

// snapshotFlags come last, so that they override the user's flags.
func snapshotFlags(want *etcdv1.EtcdCluster, s Snapshots) []string {
	switch {
	case s != Frequent:
		return nil
	case Volatile(want): // a new member gets the snapshot, and not the log
		return []string{"--snapshot-count=1", "--snapshot-catchup-entries=1"}
	}
	return []string{"--snapshot-count=1"}
}
