// Package model simulates etcd and its Kubernetes objects in memory, for the simulator and for
// tests. It has etcd's relevant semantics. A majority of the voters acknowledges a write once it
// is on their disks. A majority elects a leader, which has the longest log of that majority. The
// member list changes one entry at a time and with a quorum. A member without data starts only
// as its bootstrap ConfigMap permits.
package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// clusterID is the cluster ID of every member.
const clusterID = 0xc1

// disk is a data directory.
type disk struct {
	identity uint64 // of the member that wrote it; 0 if empty
	index    uint64
	minor    int // newest minor release that wrote it
	// old says that entries of the old API come after the last snapshot.
	old bool
	// terminating reports that its claim is being deleted: it lasts as long as its pod.
	terminating bool
	// unbound reports that its PersistentVolume no longer exists: the data lasts as long as its pod,
	// and the claim stays.
	unbound bool
	// recreated reports that a user replaced the claim under the pod: the data lasts as long as its pod, and the
	// claim has an empty volume.
	recreated bool
	// gone reports that a user removed the claim and its finalizer under the pod.
	gone bool
	// restored reports that a user created its claim.
	restored bool
	// removing reports that its claim is marked: the operator removes its member.
	removing bool
	// stripped reports that its claim has lost its labels.
	stripped bool
	// zone is the zone of its volume; empty before a pod has run on it.
	zone string
}

// doomed reports that no other pod can use the volume.
func (d *disk) doomed() bool { return d.terminating || d.unbound || d.recreated || d.gone }

// entry is an entry of etcd's member list.
type entry struct {
	name, url string
	id        uint64
	role      etcd.Role
	joined    bool
	since     time.Time // when it joined
	unmanaged bool
}

// Model is one cluster. It implements sim.Model and sim.Truthful.
type Model struct {
	clock    time.Time
	volatile bool
	leaving  bool
	// tornDown reports that the deletion of the cluster was prepared: Kubernetes does the rest.
	tornDown bool

	list           []entry
	initialCluster string // --initial-cluster of the first members
	leader         string
	acked          uint64
	quiet          bool // no client writes
	lastID         uint64
	wrote          map[uint64]bool // identities that have had data

	budget     budget
	bootstraps map[string]bootstrap
	// networkPolicy is the spec.networkPolicy that the last step put into effect; nil before one.
	networkPolicy *etcdv1.NetworkPolicySpec
	sets          map[string]*etcd.Set
	pods          map[string]*pod
	// tampered are manual edits of StatefulSets.
	tampered map[string]tampering
	// accounts are the service accounts of the StatefulSets' templates.
	accounts map[string]string
	// held are the remaining ticks of StatefulSets whose deletion a finalizer delays. taken are
	// the names of members whose object belongs to another application, by its kind.
	held  map[string]int
	taken map[string]string
	// corrupt are the IDs that raised the alarm CORRUPT.
	corrupt []uint64
	// backups are the volumes of members that Governor removed.
	backups map[string]disk
	// closed are the remaining ticks of zones without a node for a new member.
	closed map[string]int
	// disks are the volumes by member, or with volatile storage the pods' own.
	disks map[string]*disk
	sizes map[string]int64
	// versions are those written on the claims.
	versions map[string]string
	// owned volumes are deleted with the cluster.
	owned map[string]bool

	health map[string]health
	err    error

	// want is the cluster as declared. refusing is the number of ticks for which an admission
	// webhook rejects every pod.
	want     *etcdv1.EtcdCluster
	refusing int
	// trial is the trial pod, and tries the version that it tries.
	trial etcd.Trial
	tries string
}

type bootstrap struct {
	mode    etcd.BootstrapMode
	cluster string
}

// tampering is a manual edit of a StatefulSet.
type tampering struct{ scaledToZero, scaledToTwo, rolling, badImage, sidecar, annotated bool }

// fields are the edited fields. A container that was added counts once a pod with it fails.
func (t tampering) fields(p *pod) string {
	tried := t.sidecar && p != nil && !p.stale(t)
	switch {
	case t.scaledToZero, t.scaledToTwo:
		return "spec.replicas"
	case t.rolling:
		return "spec.updateStrategy"
	case t.badImage, tried:
		return "spec.template.spec.containers"
	}
	return ""
}

type health struct {
	is    etcd.Health
	since time.Time
}

// New returns an empty Kubernetes cluster. With volatile storage the data is deleted with its
// pod.
func New(volatile bool) *Model {
	return &Model{
		volatile: volatile, wrote: map[uint64]bool{}, bootstraps: map[string]bootstrap{}, sets: map[string]*etcd.Set{},
		tampered: map[string]tampering{}, held: map[string]int{}, backups: map[string]disk{}, closed: map[string]int{}, taken: map[string]string{}, owned: map[string]bool{},
		accounts: map[string]string{}, pods: map[string]*pod{}, disks: map[string]*disk{}, sizes: map[string]int64{}, versions: map[string]string{}, health: map[string]health{},
	}
}

// Safe implements sim.Truthful: it returns the first violation.
func (m *Model) Safe() error {
	learners := 0
	for _, e := range m.list {
		if e.role != etcd.Learner {
			continue
		}
		learners++
		// A pod that is being deleted is no ready endpoint.
		if p, ok := m.pods[e.name]; ok && p.exposure == etcd.Exposed && !p.leaving {
			m.violated("the client Service selects %s, a learner", e.name)
		}
	}
	if m.err == nil && learners > 1 {
		m.err = fmt.Errorf("%d learners at once", learners)
	}
	return m.err
}

func (m *Model) violated(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// Observe implements sim.Model.
func (m *Model) Observe(now time.Time) etcd.World {
	w := etcd.World{Listed: m.listKnown(), Initial: etcd.InitialMembersOf(m.initialClusters()), Places: m.places(), LeftAlarms: m.leftAlarms(), TornDown: m.tornDown}
	for _, name := range m.names(w.Listed) {
		seen := m.member(name)
		if h := m.health[name]; !h.since.IsZero() {
			seen.Watched = now.Add(-m.clock.Sub(h.since)) // whatever the operator's clock says
		}
		if !w.Listed {
			seen.ID, seen.Role, seen.Joined, seen.PeerURL = 0, etcd.Outside, false, ""
		}
		if seen.Health != etcd.Unknown {
			w.ClusterID = clusterID
		}
		w.Members = append(w.Members, seen)
	}
	w.NetworkPolicy = m.networkPolicy
	w.Template, w.Trial = m.tryTemplate(w), m.trial
	w.Trial.Possible = true
	return w
}

// initialClusters are the --initial-cluster of all bootstrap ConfigMaps.
func (m *Model) initialClusters() map[string]string {
	all := map[string]string{}
	for name, b := range m.bootstraps {
		if all[name] = ""; b.mode == etcd.BootstrapCluster {
			all[name] = b.cluster
		}
	}
	return all
}

// names are the members that either system has, managed ones first.
func (m *Model) names(listed bool) []string {
	known := map[string]bool{}
	for name := range m.sets {
		known[name] = true
	}
	for name, d := range m.disks {
		p := m.pods[name]
		known[name] = known[name] || m.volatile || !d.terminating && !d.gone || p != nil && (p.orphaned || m.held[name] > 0) && !p.leaving
	}
	for _, e := range m.list {
		known[e.name] = known[e.name] || listed
	}
	var all []string
	for name, is := range known {
		if is {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return all
}

func rank(name string) int64 {
	if n := etcd.Number(name); n >= 0 {
		return n
	}
	return 1 << 40
}

// set is the member's StatefulSet as the driver observes it.
func (m *Model) set(name string) etcd.Set {
	s, ok := m.sets[name]
	if !ok {
		return etcd.Set{}
	}
	seen := *s
	seen.Edited, seen.Problem = m.tampered[name].fields(m.pods[name]), m.rejection(name)
	if m.tampered[name].annotated {
		seen.Harmless = []string{"spec.template.metadata.annotations.example.com/note"}
	}
	return seen
}

// volume is the member's claim as the driver observes it, without what its pod shows.
func (m *Model) volume(name string, set etcd.Set) etcd.Volume {
	v := etcd.Volume{Owned: m.owned[name], Size: m.sizes[name], Version: m.versions[name]}
	if d := m.disks[name]; d != nil {
		v.Exists, v.Terminating, v.Unbound, v.Stripped, v.Removing = true, d.terminating, d.unbound, d.stripped, d.removing
		v.Earlier, v.Restored = d.recreated || d.gone, d.restored
	}
	if m.volatile {
		v.Exists = v.Exists || set.Exists || m.held[name] > 0 && m.pods[name] != nil
		v.Terminating = v.Terminating || v.Exists && m.held[name] > 0
	}
	return v
}

func (m *Model) member(name string) etcd.Member {
	seen := etcd.Member{Name: name, Bootstrap: m.bootstraps[name].mode}
	if e, ok := m.entry(name); ok {
		seen.ID, seen.Role, seen.Joined, seen.PeerURL, seen.Unmanaged = e.id, e.role, e.joined, e.url, e.unmanaged
	}
	seen.Set = m.set(name)
	seen.Obstacle = m.obstacle(name)
	d, hasDisk := m.disks[name]
	seen.Volume = m.volume(name, seen.Set)
	if h := m.health[name]; !h.since.IsZero() {
		seen.Health, seen.Since = h.is, h.since
	}
	if p, ok := m.pods[name]; ok {
		seen.Pod, seen.Volume.AwaitsPod = p.observed(m.isReady(name)), p.awaited
		seen.Pod.Stale = !p.leaving && p.stale(m.tampered[name])
		seen.Volume.Lost, seen.Volume.Detail = p.lastWords != "" && p.lastWords != unreadable && seen.Bootstrap == etcd.BootstrapDisabled, p.lastWords
		if seen.Health != etcd.Unknown && hasDisk {
			seen.Index, seen.Version = d.index, p.version
			seen.Leads = m.leader == name && m.hasQuorum()
		}
	}
	if slices.Contains(m.corrupt, seen.ID) && m.listKnown() {
		seen.Alarms = []string{corrupt}
	}
	seen.OldLog = m.oldLog(seen)
	return seen
}

// stale reports that the pod was created from another template than the edited one.
func (p *pod) stale(now tampering) bool {
	return p.badImage != now.badImage || p.sidecar != now.sidecar || p.relabelled
}

func (m *Model) entry(name string) (*entry, bool) {
	for i := range m.list {
		if m.list[i].name == name {
			return &m.list[i], true
		}
	}
	return nil, false
}

// Provide implements sim.Model. Of the resources it uses bootstrap ConfigMaps and the disruption
// budget.
func (m *Model) Provide(want *etcdv1.EtcdCluster, resources []lifecycle.Object, fx *sim.Effects) error {
	m.leaving, m.want = want.DeletionTimestamp != nil, want
	if err := m.provideBudget(resources, fx); err != nil {
		return err
	}
	wanted := map[string]bootstrap{}
	for _, obj := range resources {
		if o, ok := obj.(*corev1.ConfigMap); ok {
			wanted[o.Labels[etcd.LabelMember]] = bootstrap{etcd.BootstrapModeOf(o), o.Data["cluster"]}
		}
	}
	for _, name := range keys(wanted) {
		if m.bootstraps[name] != wanted[name] && m.taken[name] != configMap {
			d := wanted[name]
			if err := fx.Do(fmt.Sprintf("bootstrap ConfigMap of %s: %q", name, d.mode), func() error { m.bootstraps[name] = d; return nil }); err != nil {
				return err
			}
		}
	}
	for _, name := range keys(m.bootstraps) {
		if _, ok := wanted[name]; !ok {
			if err := fx.Do("prune the bootstrap ConfigMap of "+name, func() error { delete(m.bootstraps, name); return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// keys are sorted, so that a seed always produces the same run.
func keys[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
