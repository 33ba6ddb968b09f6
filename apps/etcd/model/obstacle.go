package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/governor-dev/governor/apps/etcd"
)

// HoldSet deletes the member's StatefulSet, as kubectl delete would, while the finalizer of
// another controller keeps it: its pod runs on.
func (m *Model) HoldSet(name string) { m.hold(name, forEver) }

func (m *Model) hold(name string, ticks int) {
	if _, ok := m.sets[name]; !ok {
		return
	}
	delete(m.sets, name)
	delete(m.tampered, name)
	m.held[name] = ticks
}

// LetGo takes the finalizers of others away. Kubernetes deletes the StatefulSets then, and
// their pods.
func (m *Model) LetGo() { clear(m.held) }

// TakeName makes somebody else's ConfigMap of the name that the next member's has.
func (m *Model) TakeName(name string) { m.taken[name] = true }

// Mend implements sim.Mendable: somebody takes the finalizers away.
func (m *Model) Mend() { m.LetGo() }

func (m *Model) letGo() {
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
	case m.taken[name]:
		return etcd.Obstacle{Kind: "ConfigMap", Name: etcd.BootstrapConfigName(name)}
	}
	return etcd.Obstacle{}
}

// holdSet spares members whose data goes with the StatefulSet and that only another voter can
// replace: until that one has started, it is as if two were away.
func (m *Model) holdSet(name string, chance *rand.Rand) string {
	const learners = 4 // the minor release that has them
	if s, ok := m.sets[name]; !ok || m.needsPod(name) && (!m.spare(name) || minorOf(s.Version) < learners) {
		return ""
	}
	ticks := 1 + chance.IntN(60)
	if chance.IntN(3) == 0 {
		ticks = forEver
	}
	m.hold(name, ticks)
	return fmt.Sprintf("somebody deletes the StatefulSet %s, and a finalizer holds it for %d ticks", name, ticks)
}

func (m *Model) takeName(_ string, chance *rand.Rand) string {
	next := int64(0)
	for _, e := range m.list {
		next = max(next, etcd.Number(e.name)+1)
	}
	name := fmt.Sprintf("e-%d", next+int64(chance.IntN(2)))
	if _, ok := m.doors[name]; ok || len(m.list) == 0 {
		return ""
	}
	m.TakeName(name)
	return "somebody takes the name of the ConfigMap of " + name
}
