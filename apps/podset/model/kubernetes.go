package model

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// Tick implements sim.Model: the scheduler and the kubelets do their part, at chance
// speed.
func (m *Model) Tick(now time.Time, chance *rand.Rand) {
	m.now = now
	m.pods = slices.DeleteFunc(m.pods, func(p *pod) bool { return p.Leaving && chance.IntN(3) == 0 })
	for _, p := range m.pods {
		if p.Phase == podset.Ended || p.Leaving || p.Ready || chance.IntN(2) == 0 {
			continue
		}
		if p.Node == "" {
			p.Node = "node-" + strconv.Itoa(chance.IntN(3))
			continue
		}
		p.Phase, p.Ready, p.ReadySince, p.Began = podset.Running, true, now, now
		p.Trouble, p.Detail = lifecycle.PodProblemNone, ""
	}
}

// Break implements sim.Model: pods are lost, end and change hands, others take their
// names, and quotas come and go.
func (m *Model) Break(now time.Time, chance *rand.Rand) string {
	m.now = now
	victim := m.any(chance)
	switch what := chance.IntN(9); {
	case what == 0:
		m.room = chance.IntN(6)
		return "a quota of few pods is set"
	case what == 1:
		return "an orphan " + m.Put("orphan-"+strconv.Itoa(m.born), true)
	case what == 2:
		return "a stranger " + m.Put(m.want.Name+"-"+strconv.Itoa(chance.IntN(6)), false)
	case what == 3 || victim == "":
		m.Mend()
		return "the quota is raised"
	case what == 4:
		return "labelled otherwise: " + m.Hand(victim)
	case what == 5:
		return "stripped of labels: " + m.Strip(victim)
	case what == 6:
		return "ended: " + m.End(victim)
	case what == 7:
		return "not ready: " + m.weaken(victim)
	}
	return "lost: " + m.Lose(victim)
}

func (m *Model) any(chance *rand.Rand) string {
	if len(m.pods) == 0 {
		return ""
	}
	return m.pods[chance.IntN(len(m.pods))].Name
}

// Mend implements sim.Mendable: somebody takes the quota away.
func (m *Model) Mend() { m.room = -1 }

// Put makes a pod without a controller, with the set's labels or without any. If there
// is one of the name nothing happens.
func (m *Model) Put(name string, matching bool) string {
	if m.named(name) == nil {
		m.put(&pod{watched: matching, Pod: podset.Pod{Name: name, Matches: matching}})
	}
	return name
}

// Hand gives the pod the labels of another set.
func (m *Model) Hand(name string) string {
	m.named(name).Matches = false
	return name
}

// Strip takes the pod's labels away.
func (m *Model) Strip(name string) string {
	p := m.named(name)
	p.Matches, p.watched = false, false
	return name
}

// End lets the pod's containers end for good.
func (m *Model) End(name string) string {
	p := m.named(name)
	if p.Began.IsZero() {
		p.Began = m.now
	}
	p.Phase, p.Ready, p.ReadySince, p.Gone = podset.Ended, false, time.Time{}, m.now
	return name
}

// Lose makes the pod vanish, as a node that dies would.
func (m *Model) Lose(name string) string {
	m.pods = slices.DeleteFunc(m.pods, func(p *pod) bool { return p.Name == name })
	return name
}

func (m *Model) weaken(name string) string {
	if p := m.named(name); p.Ready {
		p.Ready, p.ReadySince = false, time.Time{}
	}
	return name
}

// Owners says of every pod that is not being deleted whether the set controls it.
func (m *Model) Owners() map[string]bool {
	owners := map[string]bool{}
	for _, p := range m.pods {
		if !p.Leaving {
			owners[p.Name] = p.Owned
		}
	}
	return owners
}
