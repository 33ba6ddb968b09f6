package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
)

// Break implements sim.Model. All pods may be lost while their data is kept. Data is lost only
// while a majority of the voters keeps its own.
func (m *Model) Break(_ time.Time, rng *rand.Rand) string {
	names := keys(m.pods)
	if len(names) == 0 {
		return ""
	}
	name := names[rng.IntN(len(names))]
	return faults[rng.IntN(len(faults))].inject(m, name, rng)
}

// mayLoseData reports that the voters keep a majority with data when this one loses its own. It
// is false while its bootstrap ConfigMap permits a start without data: see the planner's package
// comment about the window before it is disabled. No operator is down for that long.
func (m *Model) mayLoseData(name string) bool {
	if m.mayStartEmpty(name) {
		return false
	}
	kept := m.voters(func(e entry) bool {
		d := m.disks[e.name]
		return e.name != name && !m.loses(e.name) && d != nil && d.identity == e.id && d.index > 0
	})
	return len(m.list) > 0 && kept >= m.quorum()
}

// loses reports that the member's data is about to be deleted with its pod.
func (m *Model) loses(name string) bool {
	p := m.pods[name]
	return m.needsPod(name) && (p == nil || p.leaving || m.held[name] > 0)
}

// mayStartEmpty reports that the member may still start without data.
func (m *Model) mayStartEmpty(name string) bool {
	const moment = 80 * time.Second
	e, ok := m.entry(name)
	return m.bootstraps[name].mode != etcd.BootstrapDisabled && (!ok || !e.joined || m.clock.Sub(e.since) < moment)
}

// needsPod reports that the data is deleted with the pod.
func (m *Model) needsPod(name string) bool {
	d := m.disks[name]
	return m.volatile || d != nil && d.doomed()
}

func (m *Model) losePod(name string, _ *rand.Rand) string {
	if m.needsPod(name) && !m.mayLoseData(name) {
		return ""
	}
	m.LosePod(name)
	return "the pod of " + name + " is lost"
}

func (m *Model) loseAllPods(string, *rand.Rand) string {
	if slices.ContainsFunc(keys(m.pods), m.needsPod) {
		return ""
	}
	for _, name := range keys(m.pods) {
		m.removePod(name)
	}
	return "all pods are lost"
}

func (m *Model) loseDisk(name string, _ *rand.Rand) string {
	if m.volatile || !m.mayLoseData(name) {
		return ""
	}
	m.LoseVolume(name)
	return "the volume of " + name + " and its pod are lost"
}

func (m *Model) wipeDisk(name string, _ *rand.Rand) string {
	if !m.mayLoseData(name) {
		return ""
	}
	if d := m.disks[name]; d != nil {
		*d = disk{removing: d.removing}
		m.pods[name].up = false
	}
	return "the data directory of " + name + " is wiped"
}

func (m *Model) endPod(name string, _ *rand.Rand) string {
	if m.needsPod(name) && !m.mayLoseData(name) {
		return ""
	}
	m.pods[name].up, m.pods[name].ended = false, true
	if d := m.disks[name]; d != nil && d.doomed() {
		m.loseData(name)
	}
	if m.volatile {
		m.disks[name] = &disk{}
	}
	return "the pod of " + name + " has terminated"
}

func (m *Model) loseNode(name string, rng *rand.Rand) string {
	if m.needsPod(name) && !m.mayLoseData(name) {
		return ""
	}
	m.removePod(name)
	if _, ok := m.sets[name]; ok && m.rejection(name) == "" {
		m.createPod(name)
		m.schedule(name, rng)
		m.pods[name].nodeless = max(m.pods[name].nodeless, rng.IntN(90))
	}
	return "the node of " + name + " is lost, and no other is free at first"
}

func (m *Model) loseSet(name string, _ *rand.Rand) string {
	if m.needsPod(name) && !m.mayLoseData(name) {
		return ""
	}
	m.LoseSet(name)
	return "a user deletes the StatefulSet " + name
}

func temporary(what string, with func(*pod)) func(*Model, string, *rand.Rand) string {
	return func(m *Model, name string, rng *rand.Rand) string {
		p := m.pods[name]
		with(p)
		p.illTicks = 1 + rng.IntN(40)
		return fmt.Sprintf("%s %s for %d ticks", name, what, p.illTicks)
	}
}

func (m *Model) byHandRemoved(name string, _ *rand.Rand) string {
	n, stay := m.voters(anyEntry), m.voters(func(e entry) bool { return e.name != name && !m.loses(e.name) })
	if n < 3 || stay <= (n-1)/2 || m.RemoveByHand(name) != nil {
		return ""
	}
	return "a user removes " + name + " with etcdctl"
}

func (m *Model) byHandAdded(_ string, rng *rand.Rand) string {
	role := []etcd.Role{etcd.Learner, etcd.Voter}[rng.IntN(2)]
	n, stay := m.voters(anyEntry), func(e entry) bool { return m.connected(e) && !m.loses(e.name) }
	if !m.hasQuorum() || role == etcd.Voter && m.voters(stay) < (n+1)/2+1 {
		return ""
	}
	name, err := m.AddByHand(role)
	if err != nil {
		return ""
	}
	return "a user adds " + name + " with etcdctl as a " + string(role)
}

func (m *Model) stripLabel(name string, _ *rand.Rand) string {
	m.pods[name].exposure = etcd.Unlabelled
	return "a user removes the label of the pod of " + name
}

// toggleWrites is no fault, but some transitions need client writes.
func (m *Model) toggleWrites(string, *rand.Rand) string {
	m.quiet = !m.quiet
	return map[bool]string{true: "clients stop writing", false: "clients write again"}[m.quiet]
}

// Fill writes more than a leader's log keeps; then clients stop writing.
func (m *Model) Fill() bool {
	for range 2 * logEntries {
		if !m.write() {
			return false
		}
	}
	m.quiet = true
	return true
}

// AddByHand adds a member that never starts, as etcdctl would.
func (m *Model) AddByHand(role etcd.Role) (string, error) {
	if !m.hasQuorum() {
		return "", errNoLeader
	}
	name := fmt.Sprintf("stranger%d", m.lastID+1)
	if err := m.add(name, "http://"+name+":2380", role); err != nil {
		return "", err
	}
	if e, ok := m.entry(name); ok {
		e.unmanaged = true
	}
	return name, nil
}

// RemoveByHand removes the member from the list, as etcdctl would.
func (m *Model) RemoveByHand(name string) error {
	e, ok := m.entry(name)
	switch {
	case !m.hasQuorum():
		return errNoLeader
	case !ok:
		return errNotFound
	}
	return m.remove(*e)
}

// LosePod deletes the member's pod. With volatile storage the pod holds its data.
func (m *Model) LosePod(name string) { m.removePod(name) }

// LoseSet deletes the member's StatefulSet. Kubernetes then deletes its pod.
func (m *Model) LoseSet(name string) {
	delete(m.sets, name)
	delete(m.tampered, name)
	if p, ok := m.pods[name]; ok {
		p.leaving = true
	}
}

// LoseVolume deletes the member's volume and its pod, regardless of the quorum.
func (m *Model) LoseVolume(name string) {
	m.removePod(name)
	m.loseDisks(name)
}

// LoseNode disconnects the member's node for good: its pod stays, and nothing answers.
func (m *Model) LoseNode(name string) {
	if p, ok := m.pods[name]; ok {
		p.cut, p.illTicks = true, forever
	}
}

// LosePlace removes the member's pod, and no node has room for the next one.
func (m *Model) LosePlace(name string) {
	m.removePod(name)
	if _, ok := m.sets[name]; ok {
		m.createPod(name)
		m.pods[name].nodeless = forever
	}
}
