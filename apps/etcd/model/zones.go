package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/governor-dev/governor/apps/etcd"
)

// allZones have one node each. A volume stays in the zone of its first pod.
var allZones = []string{"a", "b", "c"}

// CloseZone cordons the zone's node, so that new members cannot run there.
func (m *Model) CloseZone(zone string) { m.closed[zone] = forever }

// OpenZone reverts CloseZone.
func (m *Model) OpenZone(zone string) { delete(m.closed, zone) }

func (m *Model) tickZones() {
	for _, zone := range keys(m.closed) {
		if m.closed[zone]--; m.closed[zone] <= 0 {
			delete(m.closed, zone)
		}
	}
}

func (m *Model) places() (all []etcd.Place) {
	for _, zone := range m.open() {
		all = append(all, etcd.Place{Node: "node-" + zone, Zone: zone})
	}
	return all
}

func (m *Model) open() (all []string) {
	for _, zone := range allZones {
		if m.closed[zone] == 0 {
			all = append(all, zone)
		}
	}
	return all
}

// schedule gives a new pod its node, as the scheduler does: in the zone of its volume, otherwise
// mostly in the zone with the fewest pods, because topology spread is only a preference.
func (m *Model) schedule(name string, rng *rand.Rand) {
	p, d := m.pods[name], m.disks[name]
	open := m.open()
	switch {
	case d != nil && d.zone != "":
		p.zone = d.zone
	case len(open) == 0:
		p.zone = allZones[0]
	case rng.IntN(4) == 0:
		p.zone = open[rng.IntN(len(open))]
	default:
		p.zone = m.emptiest(open)
	}
	if d != nil {
		d.zone = p.zone
	}
}

func (m *Model) emptiest(open []string) (found string) {
	least := -1
	for _, zone := range open {
		n := 0
		for _, p := range m.pods {
			if p.zone == zone {
				n++
			}
		}
		if least < 0 || n < least {
			found, least = zone, n
		}
	}
	return found
}

func (m *Model) closeZone(_ string, rng *rand.Rand) string {
	zone := allZones[rng.IntN(len(allZones))]
	m.closed[zone] = 1 + rng.IntN(60)
	return fmt.Sprintf("the zone %s takes no new pods for %d ticks", zone, m.closed[zone])
}
