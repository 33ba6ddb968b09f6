package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/governor-dev/governor/apps/etcd"
)

// HoldSet deletes the member's StatefulSet, as kubectl delete would, while the finalizer of
// another controller keeps it: its pod continues to run.
func (m *Model) HoldSet(name string) { m.hold(name, forever) }

func (m *Model) hold(name string, ticks int) {
	if _, ok := m.sets[name]; !ok {
		return
	}
	delete(m.sets, name)
	delete(m.tampered, name)
	m.held[name] = ticks
}

// LetGo removes the finalizers of other controllers. Kubernetes then deletes the StatefulSets
// and their pods.
func (m *Model) LetGo() { clear(m.held) }

// TakeName creates another application's ConfigMap with the name that the next member's would
// have.
func (m *Model) TakeName(name string) { m.taken[name] = configMap }

const (
	configMap = "ConfigMap"
	claim     = "PersistentVolumeClaim"
	podKind   = "Pod"
)

// Mend implements sim.Mendable: it removes the finalizers, ends the refusals, and removes the StatefulSets
// of members that users removed from etcd's list.
func (m *Model) Mend() {
	m.LetGo()
	m.refusing = 0
	for _, name := range keys(m.sets) {
		if _, ok := m.entry(name); !ok && m.hasQuorum() {
			m.LoseSet(name)
		}
	}
}

func (m *Model) tickHeld() {
	for _, name := range keys(m.held) {
		if m.held[name]--; m.held[name] <= 0 {
			delete(m.held, name)
		}
	}
}

func (m *Model) obstacle(name string) etcd.Obstacle {
	switch {
	case m.held[name] > 0:
		return etcd.Obstacle{Kind: "StatefulSet", Name: name, Going: true, Finalizers: "example.com/hold"}
	case m.taken[name] == configMap:
		return etcd.Obstacle{Kind: configMap, Name: etcd.BootstrapConfigName(name)}
	case m.taken[name] == podKind && m.sets[name] != nil && m.pods[name] == nil:
		return etcd.Obstacle{Kind: podKind, Name: name + "-0", Owner: "PodSet e"}
	case m.taken[name] == claim && m.disks[name] == nil && !m.volatile:
		return etcd.Obstacle{Kind: claim, Name: name}
	}
	return etcd.Obstacle{}
}

// holdSet excludes members whose data is deleted with the StatefulSet and that only another
// voter can replace: until that voter has started, two voters are down.
func (m *Model) holdSet(name string, rng *rand.Rand) string {
	const learners = 4 // the minor release that has them
	if s, ok := m.sets[name]; !ok || m.needsPod(name) && (!m.mayLoseData(name) || minorOf(s.Version) < learners) {
		return ""
	}
	ticks := 1 + rng.IntN(60)
	if rng.IntN(3) == 0 {
		ticks = forever
	}
	m.hold(name, ticks)
	return fmt.Sprintf("a user deletes the StatefulSet %s, and a finalizer keeps it for %d ticks", name, ticks)
}

func (m *Model) takeName(_ string, rng *rand.Rand) string {
	next := int64(0)
	for _, e := range m.list {
		next = max(next, etcd.Number(e.name)+1)
	}
	which := rng.IntN(6)
	name := fmt.Sprintf("e-%d", next+int64(which%2))
	if _, ok := m.bootstraps[name]; ok || len(m.list) == 0 || m.disks[name] != nil {
		return ""
	}
	m.taken[name] = []string{configMap, claim, podKind}[which/2]
	return "a user takes the name of the " + m.taken[name] + " of " + name
}
