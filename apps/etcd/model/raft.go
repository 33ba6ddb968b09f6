package model

import (
	"math/rand/v2"
	"strings"

	"github.com/governor-dev/governor/apps/etcd"
)

// talks says that the member runs, belongs to the cluster and reaches the others.
func (m *Model) talks(e entry) bool {
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

func anyone(entry) bool { return true }

func (m *Model) quorum() int { return m.voters(anyone)/2 + 1 }

// majority says that those who talk can agree.
func (m *Model) majority() bool { return len(m.list) > 0 && m.voters(m.talks) >= m.quorum() }

// hasQuorum says that there is a leader that can acknowledge writes.
func (m *Model) hasQuorum() bool { return m.leader != "" && m.majority() }

// follows says that the member takes what the leader sends.
func (m *Model) follows(e entry) bool { return m.talks(e) && !m.pods[e.name].slow }

// elect finds a leader among those who talk: the one with the longest log.
func (m *Model) elect(chance *rand.Rand) {
	if l, ok := m.entry(m.leader); ok && l.role == etcd.Voter && m.talks(*l) && m.majority() {
		return
	}
	m.leader = ""
	if !m.majority() || chance.IntN(2) == 0 {
		return
	}
	var longest uint64
	for _, e := range m.list {
		if e.role == etcd.Voter && m.talks(e) && (m.leader == "" || m.disks[e.name].index > longest) {
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
		m.pods[e.name].mute = false
		if e.role == etcd.Voter {
			m.disks[e.name].index = l.index
			m.wrote[e.id] = true
		}
	}
	m.acked = l.index
	return true
}

// logKept is how many entries a leader keeps; who lacks more gets a snapshot.
const logKept = 20

// replicate lets clients write, learners copy, and members tell their URLs.
func (m *Model) replicate(chance *rand.Rand) {
	if !m.hasQuorum() {
		return
	}
	for range chance.IntN(4) {
		if !m.quiet {
			m.write()
		}
	}
	for i, e := range m.list {
		if !m.follows(e) {
			continue
		}
		d := m.disks[e.name]
		if e.role == etcd.Learner {
			m.pods[e.name].mute = m.pods[e.name].mute || m.disks[m.leader].index > d.index+logKept
			d.index += (m.disks[m.leader].index - d.index + 1) / 2
		}
		if !e.joined {
			m.list[i].joined, m.list[i].since = true, m.clock
		}
	}
}

// ready is the kubelet's probe: the member does a linearizable read. A learner that
// has all data does too, for the probe does not ask as clients do.
func (m *Model) ready(name string) bool {
	e, ok := m.entry(name)
	return ok && m.talks(*e) && m.hasQuorum() && (e.role == etcd.Voter || m.disks[name].index >= m.acked)
}

// listKnown says that the operator reaches a member with a quorum behind it.
func (m *Model) listKnown() bool {
	if !m.hasQuorum() {
		return false
	}
	for _, e := range m.list {
		if m.talks(e) && !m.pods[e.name].unseen {
			return true
		}
	}
	return false
}

// says is what the member answers the operator about its health.
func (m *Model) says(e entry) etcd.Health {
	p, ok := m.pods[e.name]
	switch {
	case !ok || !p.up || p.cut || p.unseen || p.leaving || p.mute:
		return etcd.Unknown
	case p.lies:
		return map[bool]etcd.Health{true: etcd.Unhealthy, false: etcd.Healthy}[m.hasQuorum()]
	case m.talks(e) && m.hasQuorum():
		return etcd.Healthy
	}
	return etcd.Unhealthy
}

// boot is etcd's start: with data the door means nothing, without data it decides.
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
	switch door := m.doors[name]; door.stands {
	case etcd.BootstrapCluster:
		return m.found(name, door.cluster, d, minor), ""
	case etcd.BootstrapJoin:
		return m.join(name, d, minor), ""
	}
	return false, "the data directory is empty"
}

// found bootstraps. etcd refuses if a reachable member says that this one has
// started before (server/etcdserver, isMemberBootstrapped).
func (m *Model) found(name, cluster string, d *disk, minor int) bool {
	if m.founders == "" {
		m.founders = cluster
		for _, part := range strings.Split(cluster, ",") {
			peer, url, _ := strings.Cut(part, "=")
			m.lastID++
			m.list = append(m.list, entry{name: peer, url: url, id: m.lastID, role: etcd.Voter})
		}
	}
	if m.founders != cluster {
		m.violated("%s bootstraps a second cluster: %s, the first is %s", name, cluster, m.founders)
	}
	e, ok := m.entry(name)
	if ok && e.joined && m.majority() {
		return false
	}
	if !ok {
		return false // the others tell it that it was removed
	}
	m.begin(e, d, minor)
	return true
}

func (m *Model) join(name string, d *disk, minor int) bool {
	e, ok := m.entry(name)
	if !ok || !m.majority() {
		return false
	}
	m.begin(e, d, minor)
	return true
}

// begin gives an empty disk its identity, which must be a fresh one.
func (m *Model) begin(e *entry, d *disk, minor int) {
	if m.wrote[e.id] {
		m.violated("%s comes back under its old identity with an empty log", e.name)
	}
	d.identity, d.minor = e.id, minor
	if d.old = m.oldFor(minor); d.old && minor > readsOldEntries {
		m.violated("%s joins with release %d, and the leader's log has entries of an older one", e.name, minor)
	}
}
