package model

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// Tick implements sim.Model. The scheduler and the kubelets make random progress.
func (m *Model) Tick(now time.Time, rng *rand.Rand) {
	m.now = now
	m.pods = slices.DeleteFunc(m.pods, func(p *pod) bool { return p.Terminating && rng.IntN(3) == 0 })
	for _, p := range m.pods {
		if p.Phase == podset.PhaseFinished || p.Terminating || p.Ready || rng.IntN(2) == 0 {
			continue
		}
		if p.Node == "" {
			p.Node = "node-" + strconv.Itoa(rng.IntN(3))
			continue
		}
		p.Phase, p.Ready, p.ReadySince, p.StartedAt = podset.PhaseRunning, true, now, now
		p.Problem, p.Detail = lifecycle.PodProblemNone, ""
	}
}

// Break implements sim.Model. Pods are lost, finish or change their labels, other pods
// take their names, and quotas come and go.
func (m *Model) Break(now time.Time, rng *rand.Rand) string {
	m.now = now
	victim := m.randomName(rng)
	switch what := rng.IntN(9); {
	case what == 0:
		m.quota = rng.IntN(6)
		return "a small pod quota is set"
	case what == 1:
		return "an orphan appears: " + m.Put("orphan-"+strconv.Itoa(m.created), true)
	case what == 2:
		return "a foreign pod appears: " + m.Put(m.want.Name+"-"+strconv.Itoa(rng.IntN(6)), false)
	case what == 3 || victim == "":
		m.Mend()
		return "the quota is removed"
	case what == 4:
		return "labels of another set: " + m.Hand(victim)
	case what == 5:
		return "labels removed: " + m.Strip(victim)
	case what == 6:
		return "finished: " + m.End(victim)
	case what == 7:
		return "not ready: " + m.makeUnready(victim)
	}
	return "lost: " + m.Lose(victim)
}

func (m *Model) randomName(rng *rand.Rand) string {
	if len(m.pods) == 0 {
		return ""
	}
	return m.pods[rng.IntN(len(m.pods))].Name
}

// Mend implements sim.Mendable. It removes the quota.
func (m *Model) Mend() { m.quota = -1 }

// Put creates a pod without a controller, with the set's labels or without labels. It does
// nothing if the name is taken.
func (m *Model) Put(name string, matching bool) string {
	if m.find(name) == nil {
		m.put(&pod{watched: matching, Pod: podset.Pod{Name: name, Matches: matching}})
	}
	return name
}

// Hand gives the pod the labels of another set.
func (m *Model) Hand(name string) string {
	m.find(name).Matches = false
	return name
}

// Strip removes the pod's labels.
func (m *Model) Strip(name string) string {
	p := m.find(name)
	p.Matches, p.watched = false, false
	return name
}

// End makes the pod's containers terminate for good.
func (m *Model) End(name string) string {
	p := m.find(name)
	if p.StartedAt.IsZero() {
		p.StartedAt = m.now
	}
	p.Phase, p.Ready, p.ReadySince, p.FinishedAt = podset.PhaseFinished, false, time.Time{}, m.now
	return name
}

// Lose removes the pod immediately, as after a node failure.
func (m *Model) Lose(name string) string {
	m.pods = slices.DeleteFunc(m.pods, func(p *pod) bool { return p.Name == name })
	return name
}

func (m *Model) makeUnready(name string) string {
	if p := m.find(name); p.Ready {
		p.Ready, p.ReadySince = false, time.Time{}
	}
	return name
}

// Owners reports for each pod that is not being deleted whether the set controls it.
func (m *Model) Owners() map[string]bool {
	owners := map[string]bool{}
	for _, p := range m.pods {
		if !p.Terminating {
			owners[p.Name] = p.Owned
		}
	}
	return owners
}
