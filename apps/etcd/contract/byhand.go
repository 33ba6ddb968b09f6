package contract

import (
	"fmt"
	"slices"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// claimsDeleted: all claims are deleted while their pods run. Each member is replaced by one on
// another volume, one at a time, and the cluster stays the same.
func claimsDeleted(t *testing.T, s System) {
	before := forms(t, s, 3)
	s.DeleteClaims(t, names(before)...)
	s.Await(t, "no claim is being deleted", func() error { return noneTerminating(s.Observe(t)) })
	after := rests(t, s)
	for _, name := range names(before) {
		if slices.Contains(names(after), name) {
			t.Errorf("%s has lost its claim and must be replaced: %v", name, names(after))
		}
	}
	if after.Status.ClusterID != before.Status.ClusterID {
		t.Errorf("the cluster was %s, and is %s", before.Status.ClusterID, after.Status.ClusterID)
	}
}

func noneTerminating(seen etcd.World) error {
	for _, m := range seen.Members {
		if m.Volume.Terminating {
			return fmt.Errorf("the claim of %s is being deleted", m.Name)
		}
	}
	return nil
}

// edited: Governor reverts manual edits of StatefulSets and pods, and replaces no member.
func edited(t *testing.T, s System) {
	before := forms(t, s, 3)
	all := names(before)
	for _, edit := range []func(){
		func() { s.ScaleSet(t, all[0]) },
		func() { s.EditSet(t, all[1]) },
		func() { s.EditSet(t, all[2]); s.LosePods(t, all[2]) },
		func() { s.OrphanSet(t, all[0]) },
		func() { s.StripPod(t, all[1], etcd.LabelMember) },
		func() { strip(t, s.StripPod, all) },
		func() { strip(t, s.StripClaim, all) },
		func() {
			s.StripClaim(t, all[0], etcd.LabelMember)
			s.StripClaim(t, all[1], etcd.LabelCluster)
			s.LosePods(t, all[0])
		},
		func() { s.ScaleSet(t, all[0]); s.ScaleSet(t, all[1]); s.ScaleSet(t, all[2]) },
	} {
		edit()
		s.Await(t, "all edits are reverted", func() error { return untouched(s.Observe(t)) })
		keeps(t, before, rests(t, s))
	}
}

// strip removes a different label of each member: each of them is part of the selector.
func strip(t *testing.T, from func(t *testing.T, member, label string), members []string) {
	t.Helper()
	for i, label := range []string{lifecycle.LabelApp, lifecycle.LabelInstance, "app.kubernetes.io/name"} {
		from(t, members[i], label)
	}
}

func untouched(seen etcd.World) error {
	for _, m := range seen.Members {
		if !m.Set.Exists || m.Set.Edited != "" || m.Pod.Stripped || m.Volume.Stripped || !m.Pod.Ready {
			return fmt.Errorf("%s is %+v", m.Name, m)
		}
	}
	return nil
}

// respelled: the ID identifies a member, and Governor restores its URL.
func respelled(t *testing.T, s System) {
	before := forms(t, s, 3)
	for _, name := range names(before) {
		s.RespellURL(t, name)
	}
	s.Await(t, "all URLs are restored", func() error { return spelled(before, s.Observe(t)) })
	keeps(t, before, rests(t, s))
}

func spelled(c *etcdv1.EtcdCluster, seen etcd.World) error {
	for _, m := range seen.Members {
		if m.PeerURL != etcd.PeerURL(c, m.Name) {
			return fmt.Errorf("%s has the peer URL %s", m.Name, m.PeerURL)
		}
	}
	return nil
}
