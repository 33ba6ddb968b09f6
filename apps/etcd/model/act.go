package model

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// Errors of etcd and of the API server.
var (
	errNoLeader    = errors.New("etcdserver: no leader")
	errUnhealthy   = errors.New("etcdserver: unhealthy cluster")
	errNotFound    = errors.New("etcdserver: member not found")
	errLearners    = errors.New("etcdserver: too many learner members in cluster")
	errLagging     = errors.New("etcdserver: can only promote a learner member which is in sync with leader")
	errTerminating = errors.New("the volume is being deleted")
	errObstructed  = errors.New("another object has the name")
	errExists      = errors.New("etcdserver: peerURLs exists")
)

// Act implements sim.Model.
func (m *Model) Act(want *etcdv1.EtcdCluster, seen etcd.World, s lifecycle.Step, fx *sim.Effects) error {
	m.want = want
	if err := etcd.Moved(seen, m.Observe(time.Time{}), s); err != nil {
		return err
	}
	switch s.Name {
	case etcd.FormCluster, etcd.StartMember:
		for _, one := range etcd.Each(s) {
			if err := m.start(want, one, fx); err != nil {
				return err
			}
		}
		return nil
	case etcd.DeleteMember:
		return m.deleteMember(s, fx)
	case etcd.Restart:
		return m.restart(want, s, fx)
	case etcd.SetRetention, etcd.DeleteCluster:
		return m.setOwners(s, fx)
	case etcd.AddToService:
		return m.expose(s.Target, etcd.Exposed, fx)
	case etcd.RemoveFromService:
		return m.expose(s.Target, etcd.Hidden, fx)
	case etcd.StartTrial, etcd.DeleteTrial:
		return m.actOnTrial(s, fx)
	case etcd.RestoreStatefulSet:
		return m.apply(want, s, fx)
	case etcd.ConfigureNetworkPolicy:
		return fx.Do("put spec.networkPolicy into effect", func() error { m.networkPolicy = want.Spec.NetworkPolicy.DeepCopy(); return nil })
	case etcd.LabelPod:
		return fx.Do("label the pod of "+s.Target, func() error { m.pods[s.Target].relabel(m.sets[s.Target]); return nil })
	case etcd.KeepVolume:
		return fx.Do("unmark the claim of "+s.Target, func() error { m.mark(s.Target, false); return nil })
	case etcd.LabelVolume:
		return fx.Do("label the claim of "+s.Target, func() error { m.relabelClaim(s.Target); return nil })
	case etcd.GrowVolume:
		return fx.Do("grow "+s.Target, func() error {
			args, err := lifecycle.ArgsOf[etcd.GrowArgs](s)
			m.sizes[s.Target] = args.Size
			if p, ok := m.pods[s.Target]; ok {
				p.awaited = true
			}
			return err
		})
	}
	if m.disks[s.Target] != nil && s.Name == etcd.RemoveMember && s.Args[etcd.ArgRetention] == string(etcdv1.RetentionDelete) {
		if err := fx.Do("mark the claim of "+s.Target, func() error { m.mark(s.Target, true); return nil }); err != nil {
			return err
		}
	}
	return fx.Do(s.String()+" in etcd", func() error { return m.reconfigure(s) })
}

func (m *Model) start(want *etcdv1.EtcdCluster, s lifecycle.Step, fx *sim.Effects) error {
	if _, ok := m.disks[s.Target]; !ok && !m.volatile {
		if m.obstacle(s.Target).Kind == claim {
			return errObstructed
		}
		err := fx.Do("create the volume of "+s.Target, func() error {
			m.disks[s.Target], m.sizes[s.Target] = &disk{}, want.Spec.Storage.Size.Value()
			m.versions[s.Target], m.owned[s.Target] = s.Args[etcd.ArgVersion], !etcd.Retains(want)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := m.recordVersion(s, fx); err != nil {
		return err
	}
	return m.apply(want, s, fx)
}

// recordVersion writes the version on the claim before a pod can run with it. The driver reads
// the claim from the API server before a restart, so it sees a deletion even with a stale cache.
func (m *Model) recordVersion(s lifecycle.Step, fx *sim.Effects) error {
	v := s.Args[etcd.ArgVersion]
	if d, ok := m.disks[s.Target]; ok && d.doomed() && !m.volatile {
		return errTerminating
	}
	if _, ok := m.disks[s.Target]; !ok || m.versions[s.Target] == v || m.volatile {
		return nil
	}
	return fx.Do("write "+v+" on the volume of "+s.Target, func() error { m.versions[s.Target] = v; return nil })
}

// apply renders what a driver would apply, including rendering errors.
func (m *Model) apply(want *etcdv1.EtcdCluster, s lifecycle.Step, fx *sim.Effects) error {
	set, err := etcd.StatefulSet(want, etcd.World{}, s)
	if err != nil {
		return err
	}
	if m.obstacle(s.Target).Kind != "" {
		return errObstructed
	}
	return fx.Do("apply the StatefulSet "+s.Target, func() error {
		m.accounts[s.Target] = set.Spec.Template.Spec.ServiceAccountName
		m.tampered[s.Target] = tampering{sidecar: m.tampered[s.Target].sidecar && s.Name != etcd.RestoreStatefulSet}
		m.sets[s.Target] = &etcd.Set{
			Exists: true, Version: set.Annotations[etcd.AnnotationVersion], Revision: set.Annotations[etcd.AnnotationRevision],
			Exposure: etcd.Exposure(set.Labels[etcd.LabelExposed]), Snapshots: etcd.Snapshots(s.Args[etcd.ArgSnapshots]),
		}
		return nil
	})
}

func (m *Model) expose(name string, as etcd.Exposure, fx *sim.Effects) error {
	if s, ok := m.sets[name]; ok {
		if err := fx.Do("label the StatefulSet "+name, func() error { s.Exposure = as; return nil }); err != nil {
			return err
		}
	}
	if p, ok := m.pods[name]; ok {
		return fx.Do("label the pod of "+name, func() error { p.exposure, p.relabelled = as, true; return nil })
	}
	return nil
}

func (m *Model) deleteMember(s lifecycle.Step, fx *sim.Effects) error {
	if e, ok := m.entry(s.Target); ok && !m.leaving {
		m.violated("%s is deleted, but is a %s", e.name, e.role)
	}
	if p := m.pods[s.Target]; p != nil && !p.leaving {
		if err := fx.Do("delete the pod of "+s.Target, func() error { p.leaving = true; return nil }); err != nil {
			return err
		}
	}
	if _, ok := m.sets[s.Target]; ok {
		if err := fx.Do("delete the StatefulSet "+s.Target, func() error { delete(m.sets, s.Target); delete(m.tampered, s.Target); return nil }); err != nil {
			return err
		}
	}
	d, ok := m.disks[s.Target]
	if !ok || d.gone || m.volatile || s.Args[etcd.ArgRetention] == string(etcdv1.RetentionRetain) {
		return nil
	}
	if !d.removing || d.restored {
		m.violated("the claim of %s is deleted, and the operator did not remove its member, or a user created it", s.Target)
	}
	m.backups[s.Target] = *d
	return m.deleteVolume(s.Target, fx)
}

func (m *Model) mark(member string, removing bool) {
	if d := m.disks[member]; d != nil && !m.volatile {
		d.removing = removing
	}
}

func (m *Model) deleteVolume(member string, fx *sim.Effects) error {
	return fx.Do("delete the volume of "+member, func() error {
		m.deleteClaim(member)
		return nil
	})
}

// setOwners changes the owner of every volume. After a deletion, garbage collection deletes
// objects with an owner, including StatefulSets.
func (m *Model) setOwners(s lifecycle.Step, fx *sim.Effects) error {
	deletes := s.Args[etcd.ArgRetention] == string(etcdv1.RetentionDelete)
	for _, name := range keys(m.disks) {
		if m.owned[name] == deletes || m.volatile || deletes && m.disks[name].restored {
			continue
		}
		if err := fx.Do("change the owner of the volume of "+name, func() error { m.owned[name] = deletes; return nil }); err != nil {
			return err
		}
	}
	if s.Name == etcd.SetRetention {
		return nil
	}
	for _, name := range keys(m.sets) {
		err := fx.Do("collect the StatefulSet "+name, func() error {
			if p, ok := m.pods[name]; ok {
				p.leaving = true
			}
			delete(m.sets, name)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, name := range keys(m.disks) {
		if !m.owned[name] || m.volatile {
			continue
		}
		if err := m.deleteVolume(name, fx); err != nil {
			return err
		}
	}
	m.tornDown = true
	return nil
}

func (m *Model) restart(want *etcdv1.EtcdCluster, s lifecycle.Step, fx *sim.Effects) error {
	if err := m.recordVersion(s, fx); err != nil {
		return err
	}
	if err := m.apply(want, s, fx); err != nil {
		return err
	}
	if _, ok := m.pods[s.Target]; !ok {
		return nil
	}
	if m.isReady(s.Target) && s.Args[etcd.ArgBudget] != etcd.OverBudget && !m.evictable(s.Target) {
		return &lifecycle.Deferred{Reason: "the disruption budget permits no eviction"}
	}
	return fx.Do("delete the pod of "+s.Target, func() error {
		e, ok := m.entry(s.Target)
		if d := m.disks[s.Target]; ok && d != nil && d.doomed() {
			m.violated("the operator stops %s, which deletes its volume", e.name)
		}
		if ok && m.ready(s.Target) && missing(s.Args[etcd.ArgVersion]) && m.trial.Unknown == "" {
			m.violated("the operator stops %s, and its next image does not exist", e.name)
		}
		if ok && m.ready(s.Target) && m.rejection(s.Target) != "" {
			m.violated("the operator stops %s, and the API server rejects its next pod", e.name)
		}
		if n := m.voters(anyEntry); ok && n > 2 && m.ready(s.Target) && m.voters(m.connected)-1 < m.quorum() {
			m.violated("the operator stops %s, which breaks the quorum", e.name)
		}
		if p, ok := m.pods[s.Target]; ok {
			p.leaving = true
		}
		return nil
	})
}

// reconfigure changes etcd's member list, or its leader, with etcd's checks (server/etcdserver,
// with --strict-reconfig-check, which is the default).
func (m *Model) reconfigure(s lifecycle.Step) error {
	if !m.hasQuorum() {
		return errNoLeader
	}
	switch s.Name {
	case etcd.AddLearner:
		return m.add(s.Target, s.Args[etcd.ArgPeerURL], etcd.Learner)
	case etcd.AddVoter:
		return m.add(s.Target, s.Args[etcd.ArgPeerURL], etcd.Voter)
	case etcd.Disarm:
		m.disarm(s)
		m.write()
		return nil
	}
	e, ok := m.entry(s.Target)
	if !ok || strconv.FormatUint(e.id, 16) != s.Args[etcd.ArgID] {
		return errNotFound
	}
	switch s.Name {
	case etcd.Promote:
		leader := m.disks[m.leader] // gone with its pod, if the data is in memory
		if leader == nil || !m.connected(*e) || m.disks[e.name].index*10 < leader.index*9 {
			return errLagging
		}
		e.role = etcd.Voter
	case etcd.RewriteMemberEntry: // an entry like any other
	case etcd.UpdatePeerURL:
		e.url = s.Args[etcd.ArgPeerURL]
	case etcd.MoveLeader:
		if !m.follows(*e) || e.role != etcd.Voter {
			return errUnhealthy
		}
		m.disks[e.name].index = m.disks[m.leader].index
		m.leader = e.name
	case etcd.RemoveMember:
		if d := m.disks[e.name]; m.bootstraps[e.name].mode == etcd.FormCluster && d != nil && d.identity == 0 {
			m.violated("%s is removed, and its ConfigMap permits a start without data", e.name)
		}
		m.checkPatience(*e, s)
		return m.remove(*e)
	default:
		return fmt.Errorf("unknown step %s", s)
	}
	m.write()
	return nil
}

// checkPatience finds a voter that is removed for its silence before it was silent long enough,
// by a clock that is right.
func (m *Model) checkPatience(e entry, s lifecycle.Step) {
	const replaceAfter = 5 * time.Minute
	d, silent := m.disks[e.name], m.clock.Sub(m.health[e.name].since)
	mayReturn := d != nil && d.identity == e.id && !d.doomed() && m.obstacle(e.name).Kind == ""
	if s.Reason == "MemberDead" && e.role == etcd.Voter && mayReturn && silent < replaceAfter {
		m.violated("%s is removed after %s of silence", e.name, silent)
	}
}

func (m *Model) add(name, url string, role etcd.Role) error {
	if m.voters(m.connected) < m.voters(anyEntry) {
		return errUnhealthy
	}
	for _, e := range m.list {
		if e.url == url {
			return errExists
		}
		if e.role == etcd.Learner && role == etcd.Learner {
			return errLearners
		}
	}
	m.lastID++
	m.list = append(m.list, entry{name: name, url: url, id: m.lastID, role: role})
	m.write()
	return nil
}

func (m *Model) remove(e entry) error {
	if e.role == etcd.Voter && m.connected(e) && m.voters(m.connected)-1 < (m.voters(anyEntry)-1)/2+1 {
		return errUnhealthy
	}
	if !m.write() {
		return errUnhealthy
	}
	for i := range m.list {
		if m.list[i].name == e.name {
			m.list = append(m.list[:i], m.list[i+1:]...)
			break
		}
	}
	if p, ok := m.pods[e.name]; ok {
		p.up = false // a removed etcd exits
	}
	if m.leader == e.name {
		m.leader = ""
	}
	return nil
}
