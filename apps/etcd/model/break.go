package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
)

// Break implements sim.Model. Pods may all be lost, as long as their data is kept;
// data is only lost where a majority of the voters keeps theirs.
func (m *Model) Break(_ time.Time, chance *rand.Rand) string {
	names := keys(m.pods)
	if len(names) == 0 {
		return ""
	}
	name := names[chance.IntN(len(names))]
	return faults[chance.IntN(len(faults))].strike(m, name, chance)
}

// spare says that the voters keep a majority with data when this one loses its own.
// While its door is open it does not: see the package comment of the planner about
// the moment before a door is shut. No operator is away that long.
func (m *Model) spare(name string) bool {
	const moment = 80 * time.Second
	e, ok := m.entry(name)
	if m.doors[name].stands != etcd.BootstrapDisabled && (!ok || !e.joined || m.clock.Sub(e.since) < moment) {
		return false
	}
	kept := m.voters(func(e entry) bool {
		d, p := m.disks[e.name], m.pods[e.name]
		goes := (m.volatile || d != nil && d.doomed) && (p == nil || p.leaving || m.held[e.name] > 0) // and its data with it
		return e.name != name && !goes && d != nil && d.identity == e.id && d.index > 0
	})
	return len(m.list) > 0 && kept >= m.quorum()
}

// needsPod says that the data goes with the pod.
func (m *Model) needsPod(name string) bool {
	d := m.disks[name]
	return m.volatile || d != nil && d.doomed
}

func (m *Model) losePod(name string, _ *rand.Rand) string {
	if m.needsPod(name) && !m.spare(name) {
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
		m.bury(name)
	}
	return "all pods are lost"
}

func (m *Model) loseDisk(name string, _ *rand.Rand) string {
	if m.volatile || !m.spare(name) {
		return ""
	}
	m.LoseVolume(name)
	return "the volume of " + name + " is gone, and its pod"
}

func (m *Model) wipeDisk(name string, _ *rand.Rand) string {
	if !m.spare(name) {
		return ""
	}
	if d := m.disks[name]; d != nil {
		*d = disk{}
		m.pods[name].up = false
	}
	return "the data directory of " + name + " is wiped"
}

func (m *Model) endPod(name string, _ *rand.Rand) string {
	if m.needsPod(name) && !m.spare(name) {
		return ""
	}
	m.pods[name].up, m.pods[name].ended = false, true
	if d := m.disks[name]; d != nil && d.doomed {
		m.loseDisks(name)
	}
	if m.volatile {
		m.disks[name] = &disk{}
	}
	return "the pod of " + name + " has ended"
}

func (m *Model) loseNode(name string, chance *rand.Rand) string {
	if m.needsPod(name) && !m.spare(name) {
		return ""
	}
	m.bury(name)
	if _, ok := m.sets[name]; ok {
		m.spawn(name)
		m.settle(name, chance)
		m.pods[name].nodeless = max(m.pods[name].nodeless, chance.IntN(90))
	}
	return "the node of " + name + " is lost, and another not at hand"
}

func (m *Model) loseSet(name string, _ *rand.Rand) string {
	if m.needsPod(name) && !m.spare(name) {
		return ""
	}
	m.LoseSet(name)
	return "somebody deletes the StatefulSet " + name
}

func ill(what string, with func(*pod)) func(*Model, string, *rand.Rand) string {
	return func(m *Model, name string, chance *rand.Rand) string {
		p := m.pods[name]
		with(p)
		p.ill = 1 + chance.IntN(40)
		return fmt.Sprintf("%s %s for %d ticks", name, what, p.ill)
	}
}

func (m *Model) byHandRemoved(name string, _ *rand.Rand) string {
	if m.voters(anyone) < 3 || m.RemoveByHand(name) != nil {
		return ""
	}
	return "somebody removes " + name + " with etcdctl"
}

func (m *Model) byHandAdded(_ string, chance *rand.Rand) string {
	role := []etcd.Role{etcd.Learner, etcd.Voter}[chance.IntN(2)]
	n := m.voters(anyone)
	if !m.hasQuorum() || role == etcd.Voter && m.voters(m.talks) < (n+1)/2+1 {
		return ""
	}
	name, err := m.AddByHand(role)
	if err != nil {
		return ""
	}
	return "somebody adds " + name + " with etcdctl as a " + string(role)
}

func (m *Model) stripLabel(name string, _ *rand.Rand) string {
	m.pods[name].exposure = etcd.Unlabelled
	return "somebody takes the label from the pod of " + name
}

// silence is no fault, but some things go on only when somebody writes.
func (m *Model) silence(string, *rand.Rand) string {
	m.quiet = !m.quiet
	return map[bool]string{true: "nobody writes any more", false: "clients write again"}[m.quiet]
}

// Fill writes more than a leader's log keeps; then nobody writes any more.
func (m *Model) Fill() bool {
	for range 2 * logKept {
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
		e.stranger = true
	}
	return name, nil
}

// RemoveByHand takes the member from the list, as etcdctl would.
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

// LosePod takes the member's pod away; with volatile storage its data is in it.
func (m *Model) LosePod(name string) { m.bury(name) }

// LoseSet takes the member's StatefulSet away, and Kubernetes then its pod.
func (m *Model) LoseSet(name string) {
	delete(m.sets, name)
	delete(m.tampered, name)
	if p, ok := m.pods[name]; ok {
		p.leaving = true
	}
}

// LoseVolume takes the member's volume away with its pod, whatever becomes of the
// quorum.
func (m *Model) LoseVolume(name string) {
	m.bury(name)
	m.loseDisks(name)
}
