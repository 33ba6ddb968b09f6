package contract

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

func formsWithOne(t *testing.T, s System) {
	forms(t, s, 1)
	if w := s.Observe(t); !w.Listed || !w.Members[0].Leads || w.Members[0].Version != etcd.Newest {
		t.Errorf("a cluster of one must be led by it and run %s: %+v", etcd.Newest, w)
	}
}

// scales: names are never reused, and the cluster stays the same.
func scales(t *testing.T, s System) {
	id, highest := forms(t, s, 1).Status.ClusterID, int64(0)
	for _, size := range []int32{3, 5, 2, 1, 2} {
		before := names(s.Settles(t, lifecycle.OutcomeSettled, "AsDeclared"))
		c := forms(t, s, size)
		if c.Status.ClusterID != id {
			t.Errorf("with %d members the cluster is %s, it was %s", size, c.Status.ClusterID, id)
		}
		for _, name := range names(c) {
			if fresh := !slices.Contains(before, name); fresh && etcd.Number(name) <= highest {
				t.Errorf("with %d members the number of %s is used again", size, name)
			}
		}
		for _, name := range names(c) {
			highest = max(highest, etcd.Number(name))
		}
	}
}

// growsQuietly: a joining member gets a snapshot, and no entry follows it.
func growsQuietly(t *testing.T, s System) {
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Options.SnapshotCount = 1, 100 })
	forms(t, s, 1)
	s.Fill(t)
	forms(t, s, 3)
}

// losesPod: even the leader keeps its identity, because it keeps its data.
func losesPod(t *testing.T, s System) {
	before := forms(t, s, 3)
	s.LosePods(t, before.Status.Leader)
	keeps(t, before, rests(t, s))
}

func keeps(t *testing.T, before, after *etcdv1.EtcdCluster) {
	t.Helper()
	if !maps.Equal(identities(before), identities(after)) || before.Status.ClusterID != after.Status.ClusterID {
		t.Errorf("members were %v of %s, and are %v of %s", identities(before), before.Status.ClusterID,
			identities(after), after.Status.ClusterID)
	}
}

func losesVolume(t *testing.T, s System) {
	before := forms(t, s, 3)
	lost := before.Status.Leader
	s.LoseVolumes(t, lost)
	replaced(t, before, rests(t, s), lost)
}

// replaced: the member has a replacement, and the others have stayed.
func replaced(t *testing.T, before, after *etcdv1.EtcdCluster, removed string) {
	t.Helper()
	old, present := identities(before), identities(after)
	if _, back := present[removed]; back {
		t.Errorf("%s must not come back: %v", removed, present)
	}
	delete(old, removed)
	for name, id := range old {
		if present[name] != id {
			t.Errorf("%s was %s, and is %q", name, id, present[name])
		}
	}
	if before.Status.ClusterID != after.Status.ClusterID {
		t.Errorf("the cluster was %s, and is %s", before.Status.ClusterID, after.Status.ClusterID)
	}
}

func losesSet(t *testing.T, s System) {
	before := forms(t, s, 3)
	s.LoseSet(t, follower(t, before))
	keeps(t, before, rests(t, s))
}

// removedByHand: another member joins. The volume stays, because only a user knows whether its data is
// needed.
func removedByHand(t *testing.T, s System) {
	before := forms(t, s, 3)
	removed := follower(t, before)
	s.RemoveByHand(t, removed)
	replaced(t, before, rests(t, s), removed)
	s.Await(t, "only the volume is left", func() error { return onlyVolume(s.Observe(t), removed) })
	s.Rests(t)
	if err := onlyVolume(s.Observe(t), removed); err != nil {
		t.Error(err)
	}
}

func onlyVolume(seen etcd.World, member string) error {
	i := slices.IndexFunc(seen.Members, func(m etcd.Member) bool { return m.Name == member })
	if i < 0 || !etcd.KeptVolume(seen, seen.Members[i]) {
		return fmt.Errorf("%s is not a kept volume: %+v", member, seen.Members)
	}
	return nil
}

func addedByHand(t *testing.T, s System) {
	before := forms(t, s, 3)
	for _, role := range []etcd.Role{etcd.Learner, etcd.Voter} {
		s.AddByHand(t, role)
		keeps(t, before, rests(t, s))
	}
}

// quorumBack: two of three pods are lost, and Kubernetes recreates them.
func quorumBack(t *testing.T, s System) {
	before := forms(t, s, 3)
	s.LosePods(t, names(before)[:2]...)
	keeps(t, before, rests(t, s))
}

// dataLost: Governor reports the loss, and keeps the remaining objects.
func dataLost(t *testing.T, s System) {
	c := forms(t, s, 3)
	s.LoseVolumes(t, names(c)[:2]...)
	s.Settles(t, lifecycle.OutcomeBlocked, "QuorumLost")
	s.Rests(t)
	s.Settles(t, lifecycle.OutcomeBlocked, "QuorumLost")
	left := s.Observe(t)
	i := slices.IndexFunc(left.Members, func(m etcd.Member) bool { return m.Name == names(c)[2] })
	if i < 0 || !left.Members[i].Volume.Exists || !left.Members[i].Set.Exists {
		t.Errorf("the only copy of the data must not be touched: %+v", left)
	}
	for _, m := range left.Members {
		if !m.Set.Exists {
			t.Errorf("the StatefulSet of %s was deleted", m.Name)
		}
	}
}

// upgradesOldLogs: a new cluster of 3.5, in which no member has a snapshot, upgrades to 3.7 with
// one change of the spec. etcd 3.7 cannot read the log entries of 3.5.
func upgradesOldLogs(t *testing.T, s System) {
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Version = 3, "3.5.35" })
	before := forms(t, s, 3)
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Version = "3.7.3" })
	after := rests(t, s)
	if after.Status.Version.Current != "3.7.3" {
		t.Errorf("the members run %s", after.Status.Version.Current)
	}
	keeps(t, before, after)
}
