package model

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// pod is a member's pod with its etcd process.
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

	// cut is disconnected from all members and the operator, unseen from the operator only; slow
	// copies nothing; lies reports the opposite of its health; blind serves, and is not ready in
	// the API, because its node cannot report. Each lasts illTicks.
	cut, unseen, slow, lies, blind bool
	illTicks                       int

	// badImage cannot be pulled; orphaned has lost its StatefulSet and continues to run;
	// stripped has lost its labels; sidecar has a container that cannot start beside etcd;
	// relabelled was created before its template got its present labels.
	badImage, orphaned, stripped, sidecar, relabelled bool

	// unpublished serves no client: it got its data as a snapshot, and no entry since.
	unpublished bool

	// awaited reports that the volume has grown since the pod was created.
	awaited bool

	snapshots etcd.Snapshots

	// held is the number of ticks for which a finalizer keeps the deleted pod.
	held int
}

func (p *pod) observed(ready bool) etcd.Pod {
	seen := etcd.Pod{
		Exists: true, Ready: ready, Leaving: p.leaving, Ended: p.ended,
		Revision: p.revision, Version: p.version, Exposure: p.exposure, Node: "node-" + p.zone, Zone: p.zone, Since: p.since,
		Snapshots: p.snapshots, Stripped: p.stripped,
	}
	if p.sidecar && p.nodeless == 0 {
		seen.OtherContainer = "container s: image not found"
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
func (m *Model) Tick(now time.Time, rng *rand.Rand) {
	m.clock = now
	m.tickHeld()
	m.refusing = max(0, m.refusing-1)
	m.tickZones()
	m.tickTrial(rng)
	for _, name := range keys(m.sets) {
		m.roll(name)
	}
	for _, name := range keys(m.pods) {
		m.tickPod(name, m.pods[name], rng)
	}
	for _, name := range keys(m.sets) {
		if _, ok := m.pods[name]; !ok && m.taken[name] != podKind && !m.tampered[name].scaledToZero && m.rejection(name) == "" && rng.IntN(2) == 0 {
			m.createPod(name)
			m.schedule(name, rng)
		}
	}
	m.elect(rng)
	m.replicate(rng)
	m.snapshot()
	m.recordHealth()
}

// createPod acts as the StatefulSet controller: it creates a pod from the current template.
func (m *Model) createPod(name string) {
	s := m.sets[name]
	m.pods[name] = &pod{
		version: s.Version, revision: s.Revision, exposure: s.Exposure, since: m.clock, snapshots: s.Snapshots,
		badImage: m.tampered[name].badImage || missing(s.Version), sidecar: m.tampered[name].sidecar,
	}
	if d := m.disks[name]; !m.volatile && (d == nil || d.doomed()) {
		m.pods[name].nodeless = forever // no pod is scheduled without its claim
	}
	if m.volatile {
		m.disks[name] = &disk{}
	}
}

func (m *Model) tickPod(name string, p *pod, rng *rand.Rand) {
	_, owned := m.sets[name]
	owned = owned || m.held[name] > 0
	p.orphaned = p.orphaned && !owned
	switch {
	case p.illTicks > 0:
		p.illTicks--
	case p.cut || p.unseen || p.slow || p.lies || p.blind:
		p.cut, p.unseen, p.slow, p.lies, p.blind = false, false, false, false, false
	}
	switch {
	case !owned && !p.orphaned || p.leaving:
		if p.leaving = true; p.held > 0 {
			p.held--
		} else if rng.IntN(2) == 0 {
			m.removePod(name)
		}
	case p.nodeless > 0:
		p.nodeless--
	case !p.up && !p.ended && !p.badImage && rng.IntN(2) == 0:
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

// removePod removes the pod. It also removes the data if the pod held it, or was the last to use
// a deleted claim.
func (m *Model) removePod(name string) {
	delete(m.pods, name)
	if d := m.disks[name]; m.volatile || d != nil && d.doomed() {
		m.loseData(name)
	}
}

// loseData removes the data, and the claim, unless only its PersistentVolume was lost, or it was created again.
func (m *Model) loseData(name string) {
	switch d := m.disks[name]; {
	case d == nil || d.terminating || d.gone || !d.doomed():
		m.loseDisks(name)
	case d.unbound:
		*d = disk{unbound: true, removing: d.removing}
	default:
		*d = disk{recreated: m.pods[name] != nil, restored: true}
	}
}

func (m *Model) loseDisks(name string) {
	delete(m.disks, name)
	delete(m.sizes, name)
	delete(m.versions, name)
	delete(m.owned, name)
}

const forever = 1 << 30

// recordHealth records since when each member's health is unchanged. Silence begins with the
// first missing answer of a running pod.
func (m *Model) recordHealth() {
	is := map[string]etcd.Health{}
	for name := range m.sets {
		is[name] = etcd.Unknown
	}
	for _, e := range m.list {
		is[e.name] = m.healthOf(e)
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
