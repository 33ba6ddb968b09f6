package etcd_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// removals are members that left etcd's list, or that are leaving it.
func removals() map[string]page {
	three := func() *etcdv1.EtcdCluster { return told(wanted(3), serving(3)) }
	byHand := serving(3).with("e-2", removedByHand)
	forced := byHand.with("e-1", removedByHand)
	accepted := forced.with("e-1", onlyClaim).with("e-2", onlyClaim)
	restored := serving(3).with("e-7", onlyClaim)
	refused := func(s scene) scene { return s.with("e-2", func(m *etcd.Member) { m.Volume.Removing = true }) }
	later := told(three(), forced)
	return map[string]page{
		"ByHand":          {"the StatefulSet of a member that a user removed goes", three(), byHand, "Proceed DeleteMember e-2 (MemberRemoved)"},
		"ByHandKept":      {"its volume stays, and another member replaces it", three(), serving(3).with("e-2", onlyClaim), "Proceed AddLearner e-3 (TooFewMembers)"},
		"RestoredClaim":   {"a claim from a backup is left alone", three(), restored, "Settled AsDeclared"},
		"ForcedNew":       {"after --force-new-cluster the others may have newer data", three(), forced, "Blocked MembersExpelled"},
		"ForcedNewLater":  {"until a user decides", later, forced, "Blocked MembersExpelled"},
		"ForcedNewTaken":  {"by deleting the StatefulSets", later, accepted, "Proceed AddLearner e-3 (TooFewMembers)"},
		"TwoMarked":       {"unless Governor removed them", three(), serving(3).with("e-1", removed).with("e-2", removed), "Proceed DeleteMember e-1 (MemberRemoved)"},
		"Going":           {"Kubernetes is deleting what is left of it", three(), serving(3).with("e-2", func(m *etcd.Member) { removed(m); m.Set, m.Pod.Leaving, m.Volume.Terminating = etcd.Set{}, true, true }), "Proceed AddLearner e-3 (TooFewMembers)"},
		"Foreign":         {"clients must not read the data of another cluster", three(), serving(3).with("e-1", foreign), "Proceed RemoveFromService e-1 (MemberForeign)"},
		"ForeignDead":     {"the member has lost its own data", three(), serving(3).with("e-1", foreign).with("e-1", hidden), "Proceed RemoveMember e-1 (MemberDead)"},
		"ForeignGoes":     {"its pod goes, and its volume stays", three(), serving(3).with("e-1", foreign).with("e-1", hidden).with("e-1", removedByHand), "Proceed DeleteMember e-1 (MemberRemoved)"},
		"Refused":         {"the mark of a removal that etcd refused means nothing while the member is listed", three(), refused(serving(3)), "Proceed KeepVolume e-2 (RemovalAbandoned)"},
		"RefusedDown":     {"also while another member is down", three(), refused(serving(3)).with("e-1", down(time.Minute)), "Proceed KeepVolume e-2 (RemovalAbandoned)"},
		"RefusedDoomed":   {"a claim that is being deleted needs no mark", three(), refused(serving(3)).with("e-2", claimTerminating), "Proceed AddLearner e-3 (VolumeDeleted)"},
		"RefusedTooMany":  {"and stays as long as the member is to be removed", told(wanted(2), serving(3)), refused(serving(3)), "Proceed RemoveMember e-2 (TooManyMembers)"},
		"RefusedNotReady": {"or does not serve", three(), refused(serving(3).with("e-2", down(0))), "Wait Serving e-2 (MemberNotServing)"},
	}
}

// A claim is deleted only if Governor removed its member.
func TestRemovalKeepsClaims(t *testing.T) {
	cases := map[string]struct {
		seen  scene
		class lifecycle.Class
		kept  bool
	}{
		"Marked": {serving(3).with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); removed(m) }), lifecycle.ClassDestructive, false},
		"ByHand": {serving(3).with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); removedByHand(m) }), lifecycle.ClassDisruptive, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := etcd.Planner{}.Next(wanted(3), c.seen.World, noon).Step
			_, after := etcd.Planner{}.Effect(wanted(3), c.seen.World, s)
			i := slices.IndexFunc(after.Members, func(m etcd.Member) bool { return m.Name == "e-3" })
			if s.Name != etcd.DeleteMember || s.Class != c.class || (i >= 0 && etcd.KeptVolume(after, after.Members[i])) != c.kept {
				t.Errorf("%s is %s, and leaves %+v", s, s.Class, after.Members)
			}
		})
	}
}

// The volume with the data of another cluster is not marked for its deletion.
func TestRemovalOfForeignDataKeepsIt(t *testing.T) {
	s := etcd.Planner{}.Next(told(wanted(3), serving(3)), serving(3).with("e-1", foreign).with("e-1", hidden).World, noon).Step
	if s.Name != etcd.RemoveMember || s.Args[etcd.ArgRetention] != "" {
		t.Errorf("got %s %v", s, s.Args)
	}
}

// A claim that a user created is used by the member, and neither owned, labelled nor deleted by Governor.
func TestRestoredClaimIsTheUsers(t *testing.T) {
	restored := func(m *etcd.Member) { m.Volume.Restored = true }
	want := told(wanted(3), serving(3))
	dead := serving(3).with("e-1", restored).with("e-1", down(time.Hour))
	if s := (etcd.Planner{}).Next(want, dead.World, noon).Step; s.Name != etcd.RemoveMember || s.Args[etcd.ArgRetention] != "" {
		t.Errorf("its member is dead: %s %v", s, s.Args)
	}
	stripped := serving(3).with("e-1", restored).with("e-1", func(m *etcd.Member) { m.Volume.Stripped = true })
	if d := (etcd.Planner{}).Next(want, stripped.World, noon); d.Outcome != lifecycle.OutcomeSettled {
		t.Errorf("it lacks labels: %s", d)
	}
	copied := serving(3).with("e-1", restored).with("e-1", owns)
	if d := (etcd.Planner{}).Next(want, copied.World, noon); d.Step.Name != etcd.SetRetention {
		t.Errorf("it is a copy with the owner of the earlier one: %s", d)
	}
	want.Spec.Storage.Retention = etcdv1.RetentionDelete
	owned := serving(3).with("e-0", owns).with("e-2", owns).with("e-1", restored)
	if d := (etcd.Planner{}).Next(want, owned.World, noon); d.Outcome != lifecycle.OutcomeSettled {
		t.Errorf("the cluster does not own it: %s", d)
	}
}

func owns(m *etcd.Member) { m.Volume.Owned = true }

// The removal of a member without a volume of its own deletes its pod.
func TestRemovalWithoutVolumes(t *testing.T) {
	want := wanted(3)
	want.Spec.Storage.Medium = etcdv1.MediumMemory
	s := etcd.Planner{}.Next(want, serving(3).with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); removedByHand(m) }).World, noon).Step
	if s.Name != etcd.DeleteMember || s.Args[etcd.ArgRetention] != "" {
		t.Errorf("got %s %v", s, s.Args)
	}
}

// A claim that is kept appears in a condition, with the command that deletes it, and nowhere else.
func TestKeptVolumesAreReported(t *testing.T) {
	seen := serving(3).with("e-7", onlyClaim)
	want := told(wanted(3), seen)
	said := map[string]string{}
	for _, c := range (etcd.Planner{}).Conditions(want, seen.World, lifecycle.Settled("AsDeclared", "")) {
		said[c.Type] = c.Message
	}
	claim := etcd.ClaimName(want, "e-7")
	if !strings.HasSuffix(said["VolumesKept"], "kubectl -n ns delete pvc "+claim) {
		t.Errorf("it says %q", said["VolumesKept"])
	}
	var names []string
	for _, m := range want.Status.Members {
		names = append(names, m.Name)
	}
	if diff := cmp.Diff([]string{"e-0", "e-1", "e-2"}, names); diff != "" {
		t.Errorf("members of the status: %s", diff)
	}
	objects, err := etcd.Planner{}.Resources(want, seen.World)
	if err != nil || slices.ContainsFunc(objects, func(o lifecycle.Object) bool { return o.GetName() == etcd.BootstrapConfigName("e-7") }) {
		t.Errorf("it has a bootstrap ConfigMap, or %v", err)
	}
	if slices.ContainsFunc(etcd.Planner{}.Conditions(want, serving(3).World, lifecycle.Settled("AsDeclared", "")), func(c lifecycle.Condition) bool { return c.Type == "VolumesKept" }) {
		t.Error("the condition stays without claims")
	}
}

// While the promotion of the replacement is refused, the member whose claim is being deleted stays:
// it still counts for the quorum (simulator, seed 4217).
func TestReplacementVotesBeforeRemoval(t *testing.T) {
	scene := serving(4).with("e-0", claimTerminating).with("e-1", claimTerminating).
		with("e-3", func(m *etcd.Member) { m.Role = etcd.Learner; hidden(m) })
	d := etcd.Planner{}.Next(told(wanted(3), serving(3)), scene.World, noon)
	if d.Step.Name != etcd.Promote {
		t.Fatalf("got %s first", d)
	}
	for _, next := range d.Behind {
		if next.Step.Name == etcd.RemoveMember {
			t.Errorf("behind it: %s", next)
		}
	}
}
