package model

import "github.com/governor-dev/governor/apps/etcd"

// readsOldEntries is the last minor release that reads entries of the old API, and unreadable the
// termination message of a later one at such an entry.
const (
	readsOldEntries = 6
	unreadable      = "panic: unmarshal should never fail"
)

// oldFor reports that a new member has entries of the old API in its log: it starts a cluster
// with an older release, or a leader sends them.
func (m *Model) oldFor(minor int) bool {
	if l, ok := m.disks[m.leader]; ok && m.leader != "" {
		return l.old
	}
	return minor < readsOldEntries
}

// snapshot covers the entries of the old API on members with frequent snapshots, once no older
// release writes any.
func (m *Model) snapshot() {
	for _, e := range m.list {
		if p, ok := m.pods[e.name]; !ok || !p.up || minorOf(p.version) < readsOldEntries {
			return // the cluster's version is that of the oldest member
		}
	}
	for _, e := range m.list {
		if m.connected(e) && m.hasQuorum() && m.pods[e.name].snapshots == etcd.Frequent {
			m.disks[e.name].old = false
		}
	}
}

// oldLog is what a driver would report. It knows nothing about a silent member of 3.6 or older.
func (m *Model) oldLog(seen etcd.Member) bool {
	d := m.disks[seen.Name]
	switch {
	case d == nil || seen.Unmanaged:
		return false
	case minorOf(seen.Set.Version) > readsOldEntries:
		p, ok := m.pods[seen.Name]
		return ok && p.lastWords == unreadable
	}
	return d.old
}
