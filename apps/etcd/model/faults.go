package model

import (
	"math/rand/v2"
	"slices"

	"github.com/governor-dev/governor/apps/etcd"
)

// fault is one failure of the model, with the manipulations of the chaos catalogue that it
// represents.
type fault struct {
	// names are those in the catalogue. A fault without a name has no manipulation, such as a
	// member that reports the opposite of its health.
	names  []string
	inject func(m *Model, member string, rng *rand.Rand) string
}

// faults are chosen with equal probability.
var faults = []fault{
	{deletedPod, (*Model).losePod}, {deletedPod, (*Model).losePod},
	{[]string{"pod-delete-background-all", "pod-force-delete-all"}, (*Model).loseAllPods},
	{[]string{"node-off"}, (*Model).loseNode},
	{[]string{"pod-evict"}, (*Model).evictPod},
	{[]string{"node-drain"}, (*Model).drain},
	{[]string{"node-blind"}, temporary("serves, and its node does not report", func(p *pod) { p.blind = true })},
	{nil, (*Model).blindNodes},
	{nil, (*Model).loseDisk}, {nil, (*Model).wipeDisk},
	{[]string{"pod-edit-deadline"}, (*Model).endPod},
	{[]string{"statefulset-delete-background", "statefulset-delete-foreground", "statefulset-delete-background-all"}, (*Model).loseSet},
	{[]string{"node-cut", "node-freeze", "pod-freeze"}, temporary("is cut off", func(p *pod) { p.cut = true })},
	{[]string{"pod-isolate", "networkpolicy-edit-refuse"}, temporary("is not seen by the operator", func(p *pod) { p.unseen = true })},
	{nil, temporary("is slow", func(p *pod) { p.slow = true })}, {nil, temporary("reports the opposite of its health", func(p *pod) { p.lies = true })},
	{[]string{"etcd-remove-member"}, (*Model).byHandRemoved},
	{[]string{"etcd-add-learner", "etcd-add-voter"}, (*Model).byHandAdded},
	{nil, (*Model).toggleWrites},
	{[]string{"pod-edit-hidden"}, (*Model).stripLabel},
	{deletedClaim, (*Model).deleteOneClaim},
	{[]string{"persistentvolumeclaim-delete-background-all"}, (*Model).deleteAllClaims},
	{[]string{"statefulset-edit-replicas-zero"}, (*Model).scaleSet},
	{[]string{"statefulset-edit-image", "statefulset-edit-node-selector", "statefulset-edit-service-account", "statefulset-edit-init-container", "statefulset-edit-template-labels"}, (*Model).editSet},
	{[]string{"statefulset-edit-sidecar"}, (*Model).addSidecar},
	{nil, (*Model).annotateSet},
	{[]string{"statefulset-edit-replicas-two"}, (*Model).doubleSet},
	{[]string{"statefulset-edit-rolling"}, (*Model).rollSet},
	{[]string{"statefulset-delete-orphan"}, (*Model).orphanSet},
	{[]string{"etcd-respell-url", "etcd-misdirect-url"}, (*Model).respell},
	{[]string{"pod-strip-labels", "pod-edit-renamed"}, (*Model).stripPod},
	{strippedClaim, (*Model).stripClaim},
	{nil, (*Model).restoreClaim},
	{[]string{"pod-kill"}, (*Model).killPod},
	{[]string{"pod-kill-all"}, (*Model).killAllPods},
	{[]string{"pod-add-finalizer"}, (*Model).holdPod},
	{[]string{"statefulset-add-finalizer"}, (*Model).holdSet},
	{nil, (*Model).takeName},
	{[]string{"node-cordon"}, (*Model).closeZone},
	{[]string{"etcd-move-leader"}, (*Model).moveLeader},
	{nil, (*Model).refusePods},
}

var (
	deletedPod    = []string{"pod-delete-background", "pod-delete-foreground", "pod-delete-orphan", "pod-force-delete"}
	strippedClaim = []string{"persistentvolumeclaim-strip-labels"}
	deletedClaim  = []string{
		"persistentvolumeclaim-delete-background", "persistentvolumeclaim-delete-foreground", "persistentvolumeclaim-delete-orphan",
	}
)

// FaultNames returns the names of all manipulations that a fault of the model represents.
func FaultNames() []string {
	var all []string
	for _, f := range faults {
		all = append(all, f.names...)
	}
	return all
}

// Modelled reports whether a fault of the model represents the manipulation with that name.
func Modelled(name string) bool { return slices.Contains(FaultNames(), name) }

func (m *Model) killPod(name string, _ *rand.Rand) string {
	m.pods[name].up = false
	return "the process of " + name + " is killed"
}

func (m *Model) killAllPods(string, *rand.Rand) string {
	for _, name := range keys(m.pods) {
		m.pods[name].up = false
	}
	return "all processes are killed"
}

// holdPod deletes the pod while a finalizer of another controller keeps it. Its process exits,
// and no other pod of its name can be created.
func (m *Model) holdPod(name string, rng *rand.Rand) string {
	if m.needsPod(name) && !m.mayLoseData(name) {
		return ""
	}
	p := m.pods[name]
	p.leaving, p.up, p.held = true, false, 1+rng.IntN(40)
	return "the pod of " + name + " is deleted, and a finalizer keeps it"
}

func (m *Model) moveLeader(name string, _ *rand.Rand) string {
	e, ok := m.entry(name)
	l := m.disks[m.leader]
	if !ok || e.role != etcd.Voter || !m.hasQuorum() || l == nil || m.disks[name] == nil || m.disks[name].index < l.index || !m.connected(*e) || m.disks[name].identity != e.id {
		return ""
	}
	m.leader = name
	return "the leadership is moved to " + name
}
