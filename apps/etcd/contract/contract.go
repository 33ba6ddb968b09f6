// Package contract specifies what any etcd does under the planner's rules. The same suite runs
// on the in-memory model and on a real cluster, which keeps the model correct.
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

// System is an etcd cluster, real or not, under an operator.
type System interface {
	// Apply applies the edit to the cluster.
	Apply(t *testing.T, edit func(*etcdv1.EtcdClusterSpec))

	// Settles waits until the planner decides the outcome for the present world, and the
	// object reports it. It fails the test after a timeout.
	Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *etcdv1.EtcdCluster

	// Rests gives the operator enough time to perform any pending step.
	Rests(t *testing.T)

	// Await lets time pass until it holds. It fails the test after a timeout.
	Await(t *testing.T, what string, holds func() error)

	// Observe is a driver's observation.
	Observe(t *testing.T) etcd.World

	// Act performs a step as a driver does, without the operator's decision. The caller
	// pauses the cluster first.
	Act(t *testing.T, s lifecycle.Step) error

	// Fill writes so much that a joining member gets a snapshot; then clients stop writing.
	Fill(t *testing.T)

	// LosePods removes the pods at once, as failed nodes would.
	LosePods(t *testing.T, members ...string)

	// LoseVolumes removes the volumes and the pods.
	LoseVolumes(t *testing.T, members ...string)

	// LoseSet deletes the StatefulSet and its pod.
	LoseSet(t *testing.T, member string)

	// DeleteClaims deletes the claims under the running pods, as kubectl delete pvc would.
	DeleteClaims(t *testing.T, members ...string)

	// ScaleSet scales the StatefulSet to zero, EditSet gives it an image that does not
	// exist, and OrphanSet deletes it with --cascade=orphan.
	ScaleSet(t *testing.T, member string)
	EditSet(t *testing.T, member string)
	OrphanSet(t *testing.T, member string)

	// HoldSet deletes the StatefulSet while the finalizer of another controller keeps it, and
	// LetGo removes the finalizer. TakeName creates another ConfigMap with the member's name.
	HoldSet(t *testing.T, member string)
	LetGo(t *testing.T, member string)
	TakeName(t *testing.T, member string)

	// StripPod and StripClaim remove a label from the member's pod, and from its claim.
	StripPod(t *testing.T, member, label string)
	StripClaim(t *testing.T, member, label string)

	// RespellURL changes the spelling of the member's peer URL, as etcdctl would.
	RespellURL(t *testing.T, member string)

	// RaiseCorrupt raises the alarm CORRUPT of the member.
	RaiseCorrupt(t *testing.T, member string)

	// RemoveByHand and AddByHand change the member list as etcdctl would.
	RemoveByHand(t *testing.T, member string)
	AddByHand(t *testing.T, role etcd.Role)
}

// Run runs the suite; each test gets its own system.
func Run(t *testing.T, fresh func(t *testing.T) System) {
	t.Helper()
	suite := map[string]func(*testing.T, System){
		"FormsWithOne": formsWithOne, "ScalesToAnySize": scales,
		"KeepsAMemberThatLosesItsPod": losesPod, "ReplacesAMemberThatLosesItsVolume": losesVolume, "RestoresAStatefulSet": losesSet,
		"ReplacesAMemberRemovedByHand": removedByHand, "RemovesAMemberAddedByHand": addedByHand,
		"ReplacesACorruptMember": corruptMember,
		"RecoversWithItsQuorum":  quorumBack, "ChangesNothingWhenTheDataIsLost": dataLost,
		"ReplacesMembersWithDeletedClaims": claimsDeleted, "RevertsManualEdits": edited, "KeepsAMemberWithAChangedURL": respelled,
		"RefusesWhatEtcdRefuses": refusals, "GrowsWithoutWrites": growsQuietly,
		"UpgradesTheLogOfAnOlderRelease": upgradesOldLogs, "RepairsOtherMembersDespiteAnObstacle": obstacles,
		"KeepsEveryMemberWhenTheTemplateIsRefused": templateRefused, "KeepsEveryMemberWhenTheImageIsMissing": imageMissing,
	}
	for _, name := range slices.Sorted(maps.Keys(suite)) {
		t.Run(name, func(t *testing.T) { suite[name](t, fresh(t)) })
	}
}

// forms creates a cluster and returns it once it is settled.
func forms(t *testing.T, s System, size int32) *etcdv1.EtcdCluster {
	t.Helper()
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = size })
	return rests(t, s)
}

// rests waits until the cluster is settled, and checks what then holds for every cluster.
func rests(t *testing.T, s System) *etcdv1.EtcdCluster {
	t.Helper()
	c := s.Settles(t, lifecycle.OutcomeSettled, "AsDeclared")
	if size := int(c.Spec.Size); len(c.Status.Members) != size || int(c.Status.ReadyReplicas) != size {
		t.Errorf("%d members are wanted, the status has %+v", size, c.Status.Members)
	}
	if c.Status.ClusterID == "" || c.Status.Leader == "" || !slices.Contains(names(c), c.Status.Leader) {
		t.Errorf("the cluster's ID is %q, its leader %q of %v", c.Status.ClusterID, c.Status.Leader, names(c))
	}
	// On a busy machine a member may answer slowly at times.
	s.Await(t, "every member serves", func() error { return allServe(s.Observe(t)) })
	return c
}

func allServe(seen etcd.World) error {
	for _, m := range seen.Members {
		if etcd.KeptVolume(seen, m) {
			continue
		}
		if m.Role != etcd.Voter || m.Health != etcd.Healthy || !m.Joined || m.Unmanaged || m.Bootstrap != etcd.BootstrapDisabled || m.Index == 0 ||
			m.Set.Exposure != etcd.Exposed || m.Pod.Exposure != etcd.Exposed {
			return fmt.Errorf("all is as declared, but %s is %+v", m.Name, m)
		}
	}
	return nil
}

func names(c *etcdv1.EtcdCluster) []string {
	var all []string
	for _, m := range c.Status.Members {
		all = append(all, m.Name)
	}
	return all
}

// identities are the members' IDs by name.
func identities(c *etcdv1.EtcdCluster) map[string]string {
	all := map[string]string{}
	for _, m := range c.Status.Members {
		all[m.Name] = m.ID
	}
	return all
}

// follower returns a member that does not lead.
func follower(t *testing.T, c *etcdv1.EtcdCluster) string {
	t.Helper()
	for _, name := range names(c) {
		if name != c.Status.Leader {
			return name
		}
	}
	t.Fatalf("no follower among %v", names(c))
	return ""
}
