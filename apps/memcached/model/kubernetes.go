package model

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
)

// Tick implements sim.Model: the Deployment controller and the kubelets do their
// part, at chance speed.
func (m *Model) Tick(_ time.Time, chance *rand.Rand) {
	m.pods = slices.DeleteFunc(m.pods, func(p pod) bool { return p.Leaving && chance.IntN(2) == 0 })
	for i := range m.pods {
		m.start(&m.pods[i], chance)
	}
	dep, ok := m.deployment()
	if !ok || chance.IntN(2) == 0 {
		return
	}
	m.seenSize, m.seenImage = spec(dep)
	m.roll()
}

func (m *Model) start(p *pod, chance *rand.Rand) {
	switch {
	case p.Leaving || p.Ready || chance.IntN(2) == 0:
	case m.missing[p.image]:
		p.Trouble, p.Detail = lifecycle.PodProblemImagePullBackOff, "image cannot be pulled"
	default:
		p.Ready, p.Trouble, p.Detail = true, lifecycle.PodProblemNone, ""
	}
}

// roll is one move of the Deployment controller: surge by one, never fewer that
// answer than wanted.
func (m *Model) roll() {
	updated := m.updated(m.seenImage)
	old := m.those(func(p *pod) bool { return !p.Leaving && p.image != m.seenImage })
	ready := m.those(func(p *pod) bool { return !p.Leaving && p.Ready })
	switch all := len(updated) + len(old); {
	case len(updated) > m.seenSize:
		updated[0].Leaving = true
	case len(old) > 0 && (len(ready) > m.seenSize || !old[0].Ready || all > m.seenSize+1):
		old[0].Leaving = true
	case len(updated) < m.seenSize && all <= m.seenSize && (m.quota < 0 || len(m.pods) < m.quota):
		m.born++
		m.pods = append(m.pods, pod{Pod: memcached.Pod{Name: name(m.born)}, image: m.seenImage})
	}
}

func name(n int) string { return "pod-" + string(rune('a'+n/26%26)) + string(rune('a'+n%26)) }

// Break implements sim.Model: pods are lost, images vanish and come back, quotas
// come and go. In the end a person has mended what only a person can.
func (m *Model) Break(_ time.Time, chance *rand.Rand) string {
	switch chance.IntN(5) {
	case 0:
		m.quota = chance.IntN(4)
		return "a quota of few pods is set"
	case 1:
		m.missing[m.seenImage] = true
		return "the image is gone from the registry"
	case 2:
		return m.lose(chance)
	default:
		m.Mend()
		return "quota and image are mended"
	}
}

// Mend implements sim.Mendable: somebody takes away what only a person can.
func (m *Model) Mend() {
	m.quota = -1
	clear(m.missing)
}

// Limit sets a quota of pods; a negative one means none.
func (m *Model) Limit(pods int) { m.quota = pods }

// Withdraw takes the image from the registry.
func (m *Model) Withdraw(image string) { m.missing[image] = true }

// Lose deletes a pod, as a node that dies would.
func (m *Model) Lose(name string) {
	m.pods = slices.DeleteFunc(m.pods, func(p pod) bool { return p.Name == name })
}

func (m *Model) lose(chance *rand.Rand) string {
	if len(m.pods) == 0 {
		return ""
	}
	victim := m.pods[chance.IntN(len(m.pods))].Name
	m.Lose(victim)
	return "pod " + victim + " is lost"
}
