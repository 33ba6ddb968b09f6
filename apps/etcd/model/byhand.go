package model

import (
	"math/rand/v2"
	"strings"

	"github.com/governor-dev/governor/apps/etcd"
)

// DeleteClaim deletes the member's claim, as kubectl delete pvc would. The claim and its data
// stay while a pod with a node uses it.
func (m *Model) DeleteClaim(name string) { m.deleteClaim(name) }

func (m *Model) deleteClaim(name string) {
	d, p := m.disks[name], m.pods[name]
	switch {
	case d == nil || m.volatile:
	case p == nil || p.ended || p.nodeless > 0:
		m.loseDisks(name)
	default:
		d.terminating = true
	}
}

// LosePersistentVolume deletes the PersistentVolume of the member's claim and its finalizers. Kubernetes
// does not create a claim again whose volume is lost.
func (m *Model) LosePersistentVolume(name string) {
	d, p := m.disks[name], m.pods[name]
	if d == nil || m.volatile {
		return
	}
	d.unbound = true
	if p == nil || p.ended || p.nodeless > 0 {
		m.loseData(name)
	}
}

// RecreateClaim deletes the member's claim and the finalizer that keeps it under a pod, and creates another one.
func (m *Model) RecreateClaim(name string) {
	d, p := m.disks[name], m.pods[name]
	if d == nil || p == nil || m.volatile {
		return
	}
	d.recreated, d.gone, d.terminating, d.unbound, d.removing, d.restored = true, false, false, false, false, true
	delete(m.versions, name)
	delete(m.owned, name)
}

// RemoveClaim deletes the member's claim and the finalizer that keeps it under a pod.
func (m *Model) RemoveClaim(name string) {
	m.RecreateClaim(name)
	if d := m.disks[name]; d != nil && d.recreated {
		d.recreated, d.gone, d.restored = false, true, false
		delete(m.sizes, name)
	}
}

// ScaleSet scales the member's StatefulSet to zero, as kubectl scale would.
func (m *Model) ScaleSet(name string) {
	t := m.tampered[name]
	t.scaledToZero = true
	m.tampered[name] = t
	if p, ok := m.pods[name]; ok {
		p.leaving = true
	}
}

// EditSet gives the member's StatefulSet an image that does not exist.
func (m *Model) EditSet(name string) {
	t := m.tampered[name]
	t.badImage = true
	m.tampered[name] = t
}

// AddSidecar adds a container to the member's StatefulSet that cannot start. An apply leaves it
// there, because another manager owns it.
func (m *Model) AddSidecar(name string) {
	t := m.tampered[name]
	t.sidecar = true
	m.tampered[name] = t
}

// OrphanSet deletes the member's StatefulSet and leaves its pod.
func (m *Model) OrphanSet(name string) {
	delete(m.sets, name)
	delete(m.tampered, name)
	if p, ok := m.pods[name]; ok {
		p.orphaned = true
	}
}

// RespellURL gives the member another spelling of its peer URL, as etcdctl would.
func (m *Model) RespellURL(name string) error {
	e, ok := m.entry(name)
	if !ok || !m.hasQuorum() {
		return errNoLeader
	}
	e.url = strings.Replace(e.url, ".svc:", ".svc.cluster.local:", 1)
	return nil
}

// StripPod removes the labels of the member's pod. Its StatefulSet releases it.
func (m *Model) StripPod(name string) {
	if p, ok := m.pods[name]; ok {
		p.stripped, p.exposure = true, etcd.Unlabelled
	}
}

// StripClaim removes the labels of the member's claim. The cache then lacks it, and the driver
// finds it by its name.
func (m *Model) StripClaim(name string) {
	if d := m.disks[name]; d != nil && !m.volatile {
		d.stripped = true
	}
}

func (m *Model) relabelClaim(name string) {
	if d := m.disks[name]; d != nil {
		d.stripped = false
	}
}

func (p *pod) relabel(set *etcd.Set) {
	if p != nil && set != nil {
		p.stripped, p.exposure = false, set.Exposure
	}
}

func (m *Model) deleteOneClaim(name string, _ *rand.Rand) string {
	// The minor release that has learners. Before, the replacement votes before it serves: a user first has to correct a
	// broken container, and to end the deletion of a StatefulSet, which takes the pod and its data when it ends.
	const learners = 4
	d, p := m.disks[name], m.pods[name]
	if d == nil || m.volatile || (p.sidecar || m.held[name] > 0) && minorOf(p.version) < learners || (p.leaving || p.ended || p.nodeless > 0 || p.badImage || m.held[name] > 0) && !m.mayLoseData(name) {
		return ""
	}
	runs := p != nil && !p.ended && p.nodeless == 0
	switch kind := (m.clock.Unix() + etcd.Number(name)) % 5; {
	case kind == 0:
		m.LosePersistentVolume(name)
		return "the PersistentVolume of " + name + " is lost"
	case kind == 1 && runs:
		m.RecreateClaim(name)
		return "a user creates the claim of " + name + " again under its pod"
	case kind == 2 && runs:
		m.RemoveClaim(name)
		return "a user removes the claim of " + name + " and its finalizer under its pod"
	}
	m.deleteClaim(name)
	return "a user deletes the claim of " + name
}

func (m *Model) deleteAllClaims(_ string, rng *rand.Rand) string {
	for _, name := range keys(m.pods) {
		m.deleteOneClaim(name, rng)
	}
	return "a user deletes all claims"
}

func (m *Model) scaleSet(name string, _ *rand.Rand) string {
	if _, ok := m.sets[name]; !ok || m.needsPod(name) && !m.mayLoseData(name) {
		return ""
	}
	m.ScaleSet(name)
	return "a user scales the StatefulSet " + name + " to zero"
}

func (m *Model) editSet(name string, _ *rand.Rand) string {
	if _, ok := m.sets[name]; !ok {
		return ""
	}
	m.EditSet(name)
	return "a user edits the image of the StatefulSet " + name
}

// addSidecar leaves volatile members alone: their pods hold the data, so a user has to correct them.
func (m *Model) addSidecar(name string, _ *rand.Rand) string {
	if _, ok := m.sets[name]; !ok || m.volatile || m.refusing > 0 {
		return ""
	}
	m.AddSidecar(name)
	return "a user adds a container that cannot start to the StatefulSet " + name
}

// doubleSet scales the member's StatefulSet to two. The second pod waits for the lock on the data
// directory of the first.
func (m *Model) doubleSet(name string, _ *rand.Rand) string {
	return m.tamper(name, "a user scales the StatefulSet "+name+" to two", func(t *tampering) { t.scaledToTwo = true })
}

// rollSet makes the StatefulSet roll by itself: Kubernetes replaces a pod of another template.
func (m *Model) rollSet(name string, _ *rand.Rand) string {
	return m.tamper(name, "a user makes the StatefulSet "+name+" roll by itself", func(t *tampering) { t.rolling = true })
}

// tamper edits the member's StatefulSet, if it exists, and returns what happened.
func (m *Model) tamper(name, what string, edit func(*tampering)) string {
	if _, ok := m.sets[name]; !ok {
		return ""
	}
	t := m.tampered[name]
	edit(&t)
	m.tampered[name] = t
	return what
}

// roll acts as the StatefulSet controller does with the strategy RollingUpdate.
func (m *Model) roll(name string) {
	t, p, set := m.tampered[name], m.pods[name], m.sets[name]
	old := p != nil && set != nil && (p.stale(t) || p.revision != set.Revision || p.version != set.Version)
	if t.rolling && old && !p.leaving && (!m.needsPod(name) || m.mayLoseData(name)) {
		p.leaving = true
	}
}

// annotateSet changes an annotation of the member's pods, which takes effect at their next restart.
func (m *Model) annotateSet(name string, _ *rand.Rand) string {
	if _, ok := m.sets[name]; !ok {
		return ""
	}
	t := m.tampered[name]
	t.annotated = true
	m.tampered[name] = t
	return "a user edits an annotation in the template of the StatefulSet " + name
}

func (m *Model) orphanSet(name string, _ *rand.Rand) string {
	if _, ok := m.sets[name]; !ok {
		return ""
	}
	m.OrphanSet(name)
	return "a user deletes the StatefulSet " + name + " with --cascade=orphan"
}

func (m *Model) respell(name string, _ *rand.Rand) string {
	if m.RespellURL(name) != nil {
		return ""
	}
	return "a user respells the peer URL of " + name
}

func (m *Model) stripPod(name string, _ *rand.Rand) string {
	m.StripPod(name)
	return "a user removes all labels of the pod of " + name
}

func (m *Model) stripClaim(name string, _ *rand.Rand) string {
	m.StripClaim(name)
	return "a user removes all labels of the claim of " + name
}

// RestoreClaim restores the claim of a removed member from a backup. It is another object of the same
// name, so it has no mark.
func (m *Model) RestoreClaim(name string) bool {
	d, ok := m.backups[name]
	if _, taken := m.disks[name]; !ok || taken || m.volatile || m.sets[name] != nil {
		return false
	}
	d.removing, d.terminating, d.unbound, d.recreated, d.gone = false, false, false, false, false
	m.disks[name], m.sizes[name] = &d, 1<<30
	return true
}

func (m *Model) restoreClaim(_ string, rng *rand.Rand) string {
	names := keys(m.backups)
	if len(names) == 0 {
		return ""
	}
	name := names[rng.IntN(len(names))]
	if _, listed := m.entry(name); listed || !m.RestoreClaim(name) {
		return ""
	}
	return "a backup restores the claim of " + name
}
