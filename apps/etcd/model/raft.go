package model

import (
	"math/rand/v2"
	"strings"

	"github.com/governor-dev/governor/apps/etcd"
)

// connected reports that the member runs, belongs to the cluster and reaches the others.
func (m *Model) connected(e entry) bool {
	p, ok := m.pods[e.name]
	d := m.disks[e.name]
	return ok && p.up && !p.cut && !p.leaving && d != nil && d.identity == e.id
}

func (m *Model) voters(is func(entry) bool) int {
	n := 0
	for _, e := range m.list {
		if e.role == etcd.Voter && is(e) {
			n++
		}
	}
	return n
}

func anyEntry(entry) bool { return true }

func (m *Model) quorum() int { return m.voters(anyEntry)/2 + 1 }

// majority reports that the connected voters can agree.
func (m *Model) majority() bool { return len(m.list) > 0 && m.voters(m.connected) >= m.quorum() }

// hasQuorum reports that there is a leader that can acknowledge writes.
func (m *Model) hasQuorum() bool { return m.leader != "" && m.majority() }

// follows reports that the member accepts the leader's entries.
func (m *Model) follows(e entry) bool { return m.connected(e) && !m.pods[e.name].slow }

// elect elects the connected voter with the longest log.
func (m *Model) elect(rng *rand.Rand) {
	if l, ok := m.entry(m.leader); ok && l.role == etcd.Voter && m.connected(*l) && m.majority() {
		return
	}
	m.leader = ""
	if !m.majority() || rng.IntN(2) == 0 {
		return
	}
	var longest uint64
	for _, e := range m.list {
		if e.role == etcd.Voter && m.connected(e) && (m.leader == "" || m.disks[e.name].index > longest) {
			m.leader, longest = e.name, m.disks[e.name].index
		}
	}
	if longest < m.acked {
		m.violated("acknowledged writes are lost: %s leads with %d entries, %d were acknowledged", m.leader, longest, m.acked)
	}
}

// write appends one entry; it is acknowledged if a majority of the voters has it.
func (m *Model) write() bool {
	l, ok := m.disks[m.leader]
	if !ok || !m.hasQuorum() {
		return false
	}
	le, _ := m.entry(m.leader)
	if m.voters(func(e entry) bool { return e.name == le.name || m.follows(e) }) < m.quorum() {
		return false
	}
	l.index++
	m.wrote[le.id] = true
	for _, e := range m.list {
		if !m.follows(e) {
			continue
		}
		m.pods[e.name].unpublished = false
		if e.role == etcd.Voter {
			m.disks[e.name].index = l.index
			m.wrote[e.id] = true
		}
	}
	m.acked = l.index
	return true
}

// logEntries is the number of entries that a leader keeps. A member that lacks more gets a
// snapshot.
const logEntries = 20

// replicate lets clients write, learners copy, and members publish their URLs.
func (m *Model) replicate(rng *rand.Rand) {
	if !m.hasQuorum() {
		return
	}
	for range rng.IntN(4) {
		if !m.quiet && len(m.corrupt) == 0 {
			m.write()
		}
	}
	for i, e := range m.list {
		if !m.follows(e) {
			continue
		}
		d := m.disks[e.name]
		if e.role == etcd.Learner {
			m.pods[e.name].unpublished = m.pods[e.name].unpublished || m.disks[m.leader].index > d.index+logEntries
			d.index += (m.disks[m.leader].index - d.index + 1) / 2
		}
		if !e.joined {
			m.list[i].joined, m.list[i].since = true, m.clock
		}
	}
}

// ready is the kubelet's probe: the member performs a linearizable read. A learner that has all
// data succeeds too, because the probe does not ask as clients do.
func (m *Model) ready(name string) bool {
	e, ok := m.entry(name)
	return ok && m.connected(*e) && m.hasQuorum() && (e.role == etcd.Voter || m.disks[name].index >= m.acked)
}

// listKnown reports that the operator reaches a member with a quorum.
func (m *Model) listKnown() bool {
	if !m.hasQuorum() {
		return false
	}
	for _, e := range m.list {
		if m.connected(e) && !m.pods[e.name].unseen {
			return true
		}
	}
	return false
}

// healthOf is the member's answer to the operator about its health.
func (m *Model) healthOf(e entry) etcd.Health {
	p, ok := m.pods[e.name]
	switch {
	case !ok || !p.up || p.cut || p.unseen || p.leaving || p.unpublished:
		return etcd.Unknown
	case p.lies:
		return map[bool]etcd.Health{true: etcd.Unhealthy, false: etcd.Healthy}[m.hasQuorum()]
	case m.connected(e) && m.hasQuorum():
		return etcd.Healthy
	}
	return etcd.Unhealthy
}

// boot is etcd's start. With data it ignores the bootstrap ConfigMap; without data the ConfigMap
// decides.
func (m *Model) boot(name string, minor int) (up bool, lastWords string) {
	d := m.disks[name]
	if d == nil {
		return false, ""
	}
	if d.identity != 0 {
		if d.old && minor > readsOldEntries {
			return false, unreadable
		}
		e, ok := m.entry(name)
		if d.minor > minor {
			m.violated("%s: data of minor release %d is opened by %d", name, d.minor, minor)
		}
		d.minor = max(d.minor, minor)
		return ok && e.id == d.identity, ""
	}
	switch bootstrap := m.bootstraps[name]; bootstrap.mode {
	case etcd.BootstrapCluster:
		return m.bootstrap(name, bootstrap.cluster, d, minor), ""
	case etcd.BootstrapJoin:
		return m.join(name, d, minor), ""
	}
	return false, "the data directory is empty, or its log is missing"
}

// bootstrap starts an initial member. etcd refuses if a reachable member reports that this one
// has started before (server/etcdserver, isMemberBootstrapped).
func (m *Model) bootstrap(name, cluster string, d *disk, minor int) bool {
	if m.initialCluster == "" {
		m.initialCluster = cluster
		for _, part := range strings.Split(cluster, ",") {
			peer, url, _ := strings.Cut(part, "=")
			m.lastID++
			m.list = append(m.list, entry{name: peer, url: url, id: m.lastID, role: etcd.Voter})
		}
	}
	if m.initialCluster != cluster {
		m.violated("%s bootstraps a second cluster: %s, the first is %s", name, cluster, m.initialCluster)
	}
	e, ok := m.entry(name)
	if ok && e.joined && m.majority() {
		return false
	}
	if !ok {
		return false // the others report that it was removed
	}
	m.initDisk(e, d, minor)
	return true
}

func (m *Model) join(name string, d *disk, minor int) bool {
	e, ok := m.entry(name)
	if !ok || !m.majority() {
		return false
	}
	m.initDisk(e, d, minor)
	return true
}

// initDisk gives an empty disk its identity, which must be new.
func (m *Model) initDisk(e *entry, d *disk, minor int) {
	if m.wrote[e.id] {
		m.violated("%s returns under its old identity with an empty log", e.name)
	}
	d.identity, d.minor = e.id, minor
	if d.old = m.oldFor(minor); d.old && minor > readsOldEntries {
		m.violated("%s joins with release %d, and the leader's log has entries of an older one", e.name, minor)
	}
}
