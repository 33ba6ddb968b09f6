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
	d, p := m.disks[name], m.pods[name]
	if d == nil || m.volatile || (p.leaving || p.ended || p.nodeless > 0 || p.badImage || m.held[name] > 0) && !m.mayLoseData(name) {
		return ""
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
