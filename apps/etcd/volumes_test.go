package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// sized is a cluster with volumes of the size.
func sized(c *etcdv1.EtcdCluster, size string) *etcdv1.EtcdCluster {
	q := resource.MustParse(size)
	c.Spec.Storage.Size = &q
	return c
}

// enlarged is a cluster of three with 8Gi that is to have 16Gi.
func enlarged() *etcdv1.EtcdCluster { return sized(wanted(3), "16Gi") }

// crammed is a member that crash-loops because its volume is full.
func crammed(m *etcd.Member) { trouble(lifecycle.PodProblemCrashLoopBackOff, time.Hour)(m) }

func TestVolumesGrowBeforeAnyWait(t *testing.T) {
	unformed := scene{etcd.World{ClusterID: 1}}
	for _, m := range serving(3).Members {
		unformed = unformed.with(m.Name, func(o *etcd.Member) { *o = m; crammed(o); o.ID, o.Role, o.Joined = 0, "", false })
	}
	away := serving(3).with("e-1", crammed).with("e-2", crammed).silent()
	grown := func(s scene) scene {
		for _, m := range s.Members {
			s = s.with(m.Name, func(m *etcd.Member) { m.Volume.Size = 16 << 30 })
		}
		return s
	}
	pending := func(m *etcd.Member) { m.Volume.Pending = true }
	denied := func(m *etcd.Member) { m.Volume.Problem = "exceeded quota" }
	grew := func(m *etcd.Member) { crammed(m); m.Volume.AwaitsPod = true }
	pages := map[string]page{
		"CrashLoop":   {"a full disk may be why it does not serve", enlarged(), serving(3).with("e-0", crammed), "Proceed GrowVolume e-0 (VolumeTooSmall)"},
		"Down":        {"another member is unavailable", enlarged(), serving(3).with("e-2", down(time.Second)), "Proceed GrowVolume e-0 (VolumeTooSmall)"},
		"QuorumAway":  {"no quorum is needed", told(enlarged(), serving(3)), away, "Proceed GrowVolume e-0 (VolumeTooSmall)"},
		"Forming":     {"the first members have too little room", enlarged(), unformed, "Proceed GrowVolume e-0 (VolumeTooSmall)"},
		"Pending":     {"Kubernetes grows bound claims only", enlarged(), serving(3).with("e-0", pending), "Proceed GrowVolume e-1 (VolumeTooSmall)"},
		"Denied":      {"the others grow first", enlarged(), serving(3).with("e-0", denied), "Proceed GrowVolume e-1 (VolumeTooSmall)"},
		"DeniedLast":  {"then it is reported", enlarged(), grown(serving(3)).with("e-0", func(m *etcd.Member) { m.Volume.Size = 1; denied(m) }), "Blocked VolumeCannotGrow"},
		"RepairFirst": {"a volume that cannot grow holds up no repair", enlarged(), grown(serving(3)).with("e-0", func(m *etcd.Member) { m.Volume.Size = 1; denied(m) }).with("e-2", lost), "Proceed RemoveMember e-2 (MemberDead)"},
		"Unlisted":    {"the volume of a removed member is deleted", enlarged(), grown(serving(3)).with("e-3", func(m *etcd.Member) { m.Volume = etcd.Volume{Exists: true, Size: 1, Removing: true} }), "Proceed DeleteMember e-3 (MemberRemoved)"},
		"Grew":        {"a filesystem may grow at mount only", enlarged(), grown(serving(3)).with("e-1", grew), "Proceed Restart e-1 (VolumeGrown)"},
		"GrewDoomed":  {"no pod runs on a claim that is being deleted", enlarged(), grown(serving(3)).with("e-1", grew).with("e-1", func(m *etcd.Member) { m.Volume.Terminating, m.Volume.Lost = true, true }), "Proceed RemoveMember e-1 (MemberDead)"},
		"GrewBetween": {"the kubelet has just started etcd again", enlarged(), grown(serving(3)).with("e-1", func(m *etcd.Member) {
			grew(m)
			m.Pod.Trouble, m.Pod.LastWords = lifecycle.PodProblemNone, "panic: no space left on device"
		}), "Proceed Restart e-1 (VolumeGrown)"},
		"GrewServing": {"a member that serves keeps its pod", enlarged(), grown(serving(3)).with("e-1", func(m *etcd.Member) { m.Volume.AwaitsPod = true }), "Settled AsDeclared"},
	}
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(p.want, p.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != p.says {
				t.Errorf("%s:\n got %s\nwant %s", p.reason, d, p.says)
			}
		})
	}
}

// Kubernetes does not create the volume until a person acts, so the message says how.
func TestMissingVolumeSaysWhatToDo(t *testing.T) {
	seen := serving(3).silent().with("e-1", trouble(lifecycle.PodProblemUnschedulable, time.Hour)).with("e-1", func(m *etcd.Member) {
		m.Volume.Pending, m.Volume.Problem = true, `the StorageClass "fast" does not exist. Create it`
	})
	d := etcd.Planner{}.Next(told(wanted(3), serving(3)), seen.World, noon)
	if d.Reason != "VolumeMissing" || !strings.Contains(d.Message, `"fast" does not exist. Create it; Kubernetes then provides the volume.`) {
		t.Errorf("it says %s", d)
	}
}

// Kubernetes alternates between restarting a container and waiting. The message about the data
// does not.
func TestQuorumLostIsStableDuringCrashLoop(t *testing.T) {
	gone := func(m *etcd.Member) {
		trouble(lifecycle.PodProblemCrashLoopBackOff, time.Minute)(m)
		m.Volume.Spoiled, m.Volume.Lost = true, true
	}
	trying := func(m *etcd.Member) { gone(m); m.Volume.Lost, m.Volume.Detail = false, "" }
	for name, is := range map[string]func(*etcd.Member){"Waiting": gone, "Trying": trying} {
		seen := serving(3).silent().with("e-0", is).with("e-1", is)
		d := etcd.Planner{}.Next(told(wanted(3), serving(3)), seen.World, noon)
		if d.Reason != "QuorumLost" || strings.Contains(d.Message, "restore a backup") {
			t.Errorf("%s: the decision is %s", name, d)
		}
	}
}

func TestPreviewOfAFullDisk(t *testing.T) {
	want := "GrowVolume e-0\nGrowVolume e-1\nGrowVolume e-2\nRestart e-0: 2 of 3 voters serve, none may fail\n(Serving e-0)\nSettled AsDeclared"
	if got := steps(enlarged(), serving(3).with("e-0", crammed).World); got != want {
		t.Errorf("the plan is\n%s\nwant\n%s", got, want)
	}
}

// No member restarts with a quota that is smaller than a database: etcd would refuse all writes.
func TestQuotaThatIsTooSmallRestartsNoMember(t *testing.T) {
	quota := resource.MustParse("16Mi")
	want := wanted(3)
	want.Spec.Options.Quota = &quota
	filled := func(quota int64) scene {
		s := serving(3)
		for _, name := range []string{"e-0", "e-1", "e-2"} {
			s = s.with(name, func(m *etcd.Member) { m.Quota = quota })
		}
		return s.with("e-1", func(m *etcd.Member) { m.DBSize = 40 << 20 })
	}
	for name, c := range map[string]struct {
		seen   scene
		reason string
	}{
		"Larger":  {filled(2 << 30), "QuotaTooSmall"},
		"Unknown": {filled(0), "QuotaTooSmall"},
		"Running": {filled(16 << 20), "SpecChanged"}, // a restart changes nothing about it
		"Empty":   {serving(3), "SpecChanged"},
	} {
		d := etcd.Planner{}.Next(want, c.seen.World, noon)
		if d.Reason != c.reason && d.Step.Reason != c.reason {
			t.Errorf("%s: the decision is %s", name, d)
		}
		if c.reason == "QuotaTooSmall" && !strings.Contains(d.Message, "The quota is 16Mi with this spec, and the database of e-1 has 40Mi") {
			t.Errorf("%s: it says %q", name, d.Message)
		}
	}
}

// Without volumes a change of the spec replaces members: no replacement joins with a quota that is smaller than the data.
func TestQuotaThatIsTooSmallReplacesNoMember(t *testing.T) {
	quota := resource.MustParse("16Mi")
	want := wanted(3)
	want.Spec.Storage.Medium, want.Spec.Options.Quota = etcdv1.MediumMemory, &quota
	seen := serving(3).with("e-1", func(m *etcd.Member) { m.Quota, m.DBSize = 2<<30, 40<<20 })
	if d := (etcd.Planner{}).Next(want, seen.World, noon); d.Reason != "QuotaTooSmall" {
		t.Errorf("the decision is %s", d)
	}
	kept := wanted(3)
	kept.Spec.Options.Quota = &quota
	doomed := seen.with("e-1", func(m *etcd.Member) { m.Volume.Terminating = true })
	if d := (etcd.Planner{}).Next(told(kept, doomed), doomed.World, noon); d.Step.Name != etcd.AddLearner || d.Step.Intent != lifecycle.IntentRepair {
		t.Errorf("the data of e-1 lasts as long as its pod, and the decision is %s", d)
	}
	want.Spec.Options.Quota = nil
	large := seen.with("e-1", func(m *etcd.Member) { m.Quota, m.DBSize = 8<<30, 3<<30 })
	if d := (etcd.Planner{}).Next(want, large.World, noon); d.Reason == "QuotaTooSmall" {
		t.Errorf("nothing changes, and the decision is %s", d)
	}
	want.Spec.Options.SnapshotCount = 7
	if d := (etcd.Planner{}).Next(want, large.World, noon); d.Reason != "QuotaTooSmall" || !strings.Contains(d.Message, "The quota is 2Gi") {
		t.Errorf("etcd's default is too small, and the decision is %s", d)
	}
	if d := (etcd.Planner{}).Next(want, seen.World, noon); d.Step.Name != etcd.AddLearner {
		t.Errorf("another change decides %s", d)
	}
}

// A request for storage can be accepted and never fulfilled, and data of an earlier cluster can be missed: conditions say so.
func TestVolumeConditions(t *testing.T) {
	small := func(m *etcd.Member) { m.Volume.Size, m.Volume.Capacity = 10<<30, 1<<30 }
	old := serving(3)
	old.OldVolumes = []string{"e-0-4f2a", "e-1-4f2a"}
	orphaned, many := scene{old.World}, scene{old.World}
	orphaned.Orphans, many.OldVolumes = []string{"StatefulSet e-0"}, nil
	for i := range 100 {
		many.OldVolumes = append(many.OldVolumes, fmt.Sprintf("e-%d-4f2a", i))
	}
	for name, c := range map[string]struct {
		seen       scene
		kind, says string
	}{
		"NotGrown": {serving(3).with("e-1", small), "VolumesGrown", "The volume of e-1 has 1Gi, and 10Gi are requested."},
		"Grown":    {serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Size, m.Volume.Capacity = 1<<30, 1<<30 }), "VolumesGrown", ""},
		"Unknown":  {serving(3), "VolumesGrown", ""},
		"Old":      {old, "OldVolumes", "delete these PersistentVolumeClaims in the namespace ns: e-0-4f2a e-1-4f2a."},
		"NoOld":    {serving(3), "OldVolumes", ""},
		"Orphans":  {orphaned, "OldVolumes", ""},
		"Many":     {many, "OldVolumes", "e-5-4f2a, and 94 more."},
	} {
		said := ""
		for _, condition := range (etcd.Planner{}).Conditions(wanted(3), c.seen.World, lifecycle.Settled("AsDeclared", "")) {
			if condition.Type == c.kind {
				said = condition.Message
			}
		}
		if c.says == "" && said != "" || !strings.Contains(said, c.says) {
			t.Errorf("%s: it says %q, want %q", name, said, c.says)
		}
	}
}

// The preview, the event and the history of a new cluster name the volumes that it does not use.
func TestFormingNamesOldVolumes(t *testing.T) {
	want := wanted(3)
	d := etcd.Planner{}.Next(want, etcd.World{OldVolumes: []string{"e-0-4f2a"}}, noon)
	if d.Step.Name != etcd.FormCluster || !strings.Contains(d.Step.Message, "1 volume(s) of an earlier cluster of this name exist, such as e-0-4f2a") {
		t.Errorf("the decision is %s", d)
	}
}

func TestQuotaFollowsTheVolume(t *testing.T) {
	quota := resource.MustParse("3Gi")
	own := sized(wanted(3), "100Gi")
	own.Spec.Options.Quota = &quota
	byEnv := sized(wanted(3), "100Gi")
	byEnv.Spec.Pod.Env = []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "1"}}
	large := serving(3).with("e-1", func(m *etcd.Member) { m.DBSize = 600 << 20 })
	cases := map[string]struct {
		want *etcdv1.EtcdCluster
		seen scene
		says string
	}{
		"Smallest":  {sized(wanted(3), "64Mi"), serving(3), "--quota-backend-bytes=16777216"},
		"Example":   {sized(wanted(3), "1Gi"), serving(3), "--quota-backend-bytes=268435456"},
		"Default":   {sized(wanted(3), "8Gi"), serving(3), "--quota-backend-bytes=4026531840"},
		"Largest":   {sized(wanted(3), "100Gi"), serving(3), "--quota-backend-bytes=8589934592"},
		"Declared":  {own, serving(3), "--quota-backend-bytes=3221225472"},
		"ByEnv":     {byEnv, serving(3), ""},
		"NoSize":    {wanted(3), serving(3), ""},
		"NotGrown":  {sized(wanted(3), "10Gi"), serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Size, m.Volume.Capacity = 10<<30, 1<<30 }), "--quota-backend-bytes=268435456"},
		"Kept":      {sized(wanted(3), "100Gi"), serving(3).with("e-7", func(m *etcd.Member) { onlyClaim(m); m.Volume.Size, m.Volume.Capacity = 1<<30, 1<<30 }), "--quota-backend-bytes=8589934592"},
		"NoGrowth":  {sized(wanted(3), "20Gi"), serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Size, m.Volume.Capacity = 8<<30, 8<<30 }), "--quota-backend-bytes=4026531840"},
		"Filled":    {sized(wanted(3), "20Gi"), serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Size, m.Volume.Capacity, m.DBSize = 20<<30, 6<<30, 3<<30 }), "--quota-backend-bytes=3382286745"},
		"Data":      {sized(wanted(3), "1Gi"), large, "--quota-backend-bytes=1258291200"},
		"DataAtAll": {told(sized(wanted(3), "1Gi"), large), scene{}, "--quota-backend-bytes=1258291200"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := lifecycle.Step{Name: etcd.Restart, Target: "e-0", Args: map[string]string{etcd.ArgVersion: etcd.Newest}}
			set, err := etcd.StatefulSet(c.want, c.seen.World, s)
			if err != nil {
				t.Fatal(err)
			}
			flag := ""
			if args := set.Spec.Template.Spec.Containers[0].Args; slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--quota") }) {
				flag = args[slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--quota") })]
			}
			if flag != c.says {
				t.Errorf("the flag is %q, want %q", flag, c.says)
			}
		})
	}
	if small, large := etcd.Revision(sized(wanted(3), "1Gi")), etcd.Revision(sized(wanted(3), "8Gi")); small != large {
		t.Error("a larger volume must not restart members")
	}
}

// TestAllClaimsDeletedBefore34: a voter that was added directly does not outlast the others until
// it has joined, otherwise Governor would add and remove it in turns.
func TestAllClaimsDeletedBefore34(t *testing.T) {
	seen := serving(5).with("e-5", func(m *etcd.Member) {
		*m = whole(5, etcd.Newest)
		down(time.Second)(m)
		m.Joined, m.Bootstrap = false, etcd.BootstrapJoin
	})
	for _, m := range seen.Members {
		seen = seen.with(m.Name, func(m *etcd.Member) {
			m.Version, m.Set.Version, m.Pod.Version = "3.3.25", "3.3.25", "3.3.25"
			m.Volume.Terminating = m.Joined
		})
	}
	want := wanted(3)
	want.Spec.Version = "3.3"
	if d := (etcd.Planner{}).Next(told(want, seen), seen.World, noon); d.Outcome != lifecycle.OutcomeWait || d.Step.Target != "e-5" {
		t.Errorf("got %s, want to wait for e-5", d)
	}
}
