package model

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
)

// Tick implements sim.Model. The Deployment controller and the kubelets make random
// progress.
func (m *Model) Tick(_ time.Time, rng *rand.Rand) {
	m.pods = slices.DeleteFunc(m.pods, func(p pod) bool { return p.Terminating && rng.IntN(2) == 0 })
	for i := range m.pods {
		m.start(&m.pods[i], rng)
	}
	dep, ok := m.deployment()
	if !ok || rng.IntN(2) == 0 {
		return
	}
	m.observedSize, m.observedImage = spec(dep)
	m.roll()
}

func (m *Model) start(p *pod, rng *rand.Rand) {
	switch {
	case p.Terminating || p.Ready || rng.IntN(2) == 0:
	case m.missing[p.image]:
		p.Problem, p.Detail = lifecycle.PodProblemImagePullBackOff, "image cannot be pulled"
	default:
		p.Ready, p.Problem, p.Detail = true, lifecycle.PodProblemNone, ""
	}
}

// roll is one action of the Deployment controller. It surges by one and never goes below
// the wanted number of ready pods.
func (m *Model) roll() {
	updated := m.updated(m.observedImage)
	old := m.filter(func(p *pod) bool { return !p.Terminating && p.image != m.observedImage })
	ready := m.filter(func(p *pod) bool { return !p.Terminating && p.Ready })
	switch all := len(updated) + len(old); {
	case len(updated) > m.observedSize:
		updated[0].Terminating = true
	case len(old) > 0 && (len(ready) > m.observedSize || !old[0].Ready || all > m.observedSize+1):
		old[0].Terminating = true
	case len(updated) < m.observedSize && all <= m.observedSize && (m.quota < 0 || len(m.pods) < m.quota):
		m.created++
		m.pods = append(m.pods, pod{Pod: memcached.Pod{Name: name(m.created)}, image: m.observedImage})
	}
}

func name(n int) string { return "pod-" + string(rune('a'+n/26%26)) + string(rune('a'+n%26)) }

// Break implements sim.Model. Pods are lost, images vanish and come back, quotas come and
// go. In the end, Mend undoes the faults that need a user.
func (m *Model) Break(_ time.Time, rng *rand.Rand) string {
	switch rng.IntN(5) {
	case 0:
		m.quota = rng.IntN(4)
		return "a small pod quota is set"
	case 1:
		m.missing[m.observedImage] = true
		return "the image is gone from the registry"
	case 2:
		return m.loseRandom(rng)
	default:
		m.Mend()
		return "the quota is removed and the image is restored"
	}
}

// Mend implements sim.Mendable. It undoes the faults that need a user.
func (m *Model) Mend() {
	m.quota = -1
	clear(m.missing)
}

// Limit sets a quota of pods. A negative quota means none.
func (m *Model) Limit(pods int) { m.quota = pods }

// Withdraw removes the image from the registry.
func (m *Model) Withdraw(image string) { m.missing[image] = true }

// Lose deletes a pod immediately, as after a node failure.
func (m *Model) Lose(name string) {
	m.pods = slices.DeleteFunc(m.pods, func(p pod) bool { return p.Name == name })
}

func (m *Model) loseRandom(rng *rand.Rand) string {
	if len(m.pods) == 0 {
		return ""
	}
	victim := m.pods[rng.IntN(len(m.pods))].Name
	m.Lose(victim)
	return "pod " + victim + " is lost"
}
