package model

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// pod is a member's pod with the etcd in it.
type pod struct {
	version, revision string
	zone              string // of its node
	exposure          etcd.Exposure
	up                bool // etcd runs
	leaving, ended    bool
	crashes           int
	lastWords         string
	since             time.Time
	nodeless          int // ticks without a node

	// cut is off from everyone, unseen from the operator only; slow copies nothing;
	// lies says the opposite about its health. Each lasts some ticks.
	cut, unseen, slow, lies bool
	ill                     int

	// badImage cannot be pulled; orphaned has lost its StatefulSet and runs on; stripped
	// has lost its labels.
	badImage, orphaned, stripped bool

	// mute serves no client: it got its data as a snapshot, and no entry since.
	mute bool

	// awaited says that the volume has grown since the pod was made.
	awaited bool

	snapshots etcd.Snapshots

	// held is for how many ticks a finalizer keeps the pod that is being deleted.
	held int
}

func (p *pod) observed(ready bool) etcd.Pod {
	seen := etcd.Pod{
		Exists: true, Ready: ready, Leaving: p.leaving, Ended: p.ended,
		Revision: p.revision, Version: p.version, Exposure: p.exposure, Node: "node-" + p.zone, Zone: p.zone, Since: p.since,
		Snapshots: p.snapshots, Stripped: p.stripped,
	}
	switch {
	case p.nodeless > 0:
		seen.Trouble, seen.Detail, seen.Node, seen.Zone = lifecycle.PodProblemUnschedulable, "no node is free", "", ""
	case p.badImage:
		seen.Trouble, seen.Detail = lifecycle.PodProblemImagePullBackOff, "image not found"
	case p.crashes > 1 && !p.up:
		seen.Trouble, seen.Detail = lifecycle.PodProblemCrashLoopBackOff, p.lastWords
	}
	return seen
}

// Tick implements sim.Model.
func (m *Model) Tick(now time.Time, chance *rand.Rand) {
	m.clock = now
	m.letGo()
	m.openZones()
	for _, name := range keys(m.pods) {
		m.live(name, m.pods[name], chance)
	}
	for _, name := range keys(m.sets) {
		if _, ok := m.pods[name]; !ok && !m.tampered[name].scaledToZero && chance.IntN(2) == 0 {
			m.spawn(name)
			m.settle(name, chance)
		}
	}
	m.elect(chance)
	m.replicate(chance)
	m.snapshot()
	m.feel()
}

// spawn is the StatefulSet controller making a pod from the present template.
func (m *Model) spawn(name string) {
	s := m.sets[name]
	m.pods[name] = &pod{
		version: s.Version, revision: s.Revision, exposure: s.Exposure, since: m.clock, snapshots: s.Snapshots,
		badImage: m.tampered[name].badImage,
	}
	if d := m.disks[name]; !m.volatile && (d == nil || d.doomed) {
		m.pods[name].nodeless = forEver // no pod is scheduled without its claim
	}
	if m.volatile {
		m.disks[name] = &disk{}
	}
}

func (m *Model) live(name string, p *pod, chance *rand.Rand) {
	_, owned := m.sets[name]
	owned = owned || m.held[name] > 0
	p.orphaned = p.orphaned && !owned
	switch {
	case p.ill > 0:
		p.ill--
	case p.cut || p.unseen || p.slow || p.lies:
		p.cut, p.unseen, p.slow, p.lies = false, false, false, false
	}
	switch {
	case !owned && !p.orphaned || p.leaving:
		if p.leaving = true; p.held > 0 {
			p.held--
		} else if chance.IntN(2) == 0 {
			m.bury(name)
		}
	case p.nodeless > 0:
		p.nodeless--
	case !p.up && !p.ended && !p.badImage && chance.IntN(2) == 0:
		m.startUp(name, p)
	}
}

func (m *Model) startUp(name string, p *pod) {
	p.up, p.lastWords = m.boot(name, minorOf(p.version))
	if p.up {
		p.crashes, p.since = 0, m.clock
		return
	}
	if p.crashes++; p.crashes == 2 {
		p.since = m.clock
	}
}

// bury takes the pod away, with its data if that was its own, or if it alone kept it.
func (m *Model) bury(name string) {
	delete(m.pods, name)
	if d := m.disks[name]; m.volatile || d != nil && d.doomed {
		m.loseDisks(name)
	}
}

func (m *Model) loseDisks(name string) {
	delete(m.disks, name)
	delete(m.sizes, name)
	delete(m.given, name)
	delete(m.owned, name)
}

const forEver = 1 << 30

// feel notes since when each member is as it is. Silence begins when a pod that
// could answer first does not.
func (m *Model) feel() {
	is := map[string]etcd.Health{}
	for name := range m.sets {
		is[name] = etcd.Unknown
	}
	for _, e := range m.list {
		is[e.name] = m.says(e)
	}
	for name := range m.health {
		if _, ok := is[name]; !ok {
			delete(m.health, name)
		}
	}
	for name, h := range is {
		if old := m.health[name]; old.since.IsZero() || old.is != h {
			m.health[name] = health{h, m.clock}
		}
	}
}

func minorOf(version string) int {
	fields := strings.Split(version, ".")
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return n
}
