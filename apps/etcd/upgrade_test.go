package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// older runs a release whose entries etcd 3.7 cannot read.
func older(m *etcd.Member) {
	m.Version, m.Set.Version, m.Pod.Version, m.OldLog = "3.5.35", "3.5.35", "3.5.35", true
}

// stopped runs 3.6 without a snapshot of an older release's entries.
func stopped(m *etcd.Member) { m.OldLog = true }

// snapping is stopped with frequent snapshots.
func snapping(m *etcd.Member) {
	m.OldLog, m.Set.Snapshots, m.Pod.Snapshots = true, etcd.Frequent, etcd.Frequent
}

// proven has that snapshot.
func proven(m *etcd.Member) { snapping(m); m.OldLog = false }

// broken got 3.7 from an older operator, and panics at an entry of an older release.
func broken(m *etcd.Member) {
	trouble(lifecycle.PodProblemCrashLoopBackOff, time.Minute)(m)
	m.OldLog, m.Set.Version, m.Pod.Version = true, "3.7.3", "3.7.3"
}

func everyone(s scene, edit func(*etcd.Member)) scene {
	for _, m := range s.Members {
		s = s.with(m.Name, edit)
	}
	return s
}

// aged is a cluster created with 3.5 and to be upgraded to 3.7.
func aged() *etcdv1.EtcdCluster {
	c := wanted(3)
	c.Spec.Version, c.Status.Bootstrap.FirstVersion, c.Status.Bootstrap.Formed = "3.7.3", "3.5.35", true
	return c
}

func TestUpgradeWaitsForReadableLog(t *testing.T) {
	volatile := aged()
	volatile.Spec.Storage.Medium = etcdv1.MediumEphemeral
	repaired := told(aged(), serving(3))
	pages := map[string]page{
		"FromOld":     {"3.6 comes first", aged(), everyone(serving(3), older), "Proceed Restart e-1 (VersionChanged)"},
		"Stopped":     {"a member takes snapshots before 3.7", aged(), everyone(serving(3), stopped), "Proceed Restart e-1 (SnapshotNeeded)"},
		"Snapping":    {"Governor waits for the snapshots", aged(), everyone(serving(3), snapping), "Wait SnapshotTaken e (TakingSnapshot)"},
		"Proven":      {"then 3.7 comes", aged(), everyone(serving(3), proven), "Proceed Restart e-1 (VersionChanged)"},
		"NewCluster":  {"a cluster created with 3.6 has no old entries", upgradedTo("3.7.3"), serving(3), "Proceed Restart e-1 (VersionChanged)"},
		"Volatile":    {"a member without a volume is replaced by one that takes snapshots", volatile, everyone(serving(3), stopped), "Proceed AddLearner e-3 (SpecChanged)"},
		"Broken":      {"a member that cannot read its log with 3.7 gets 3.6 back", repaired, everyone(serving(3), stopped).with("e-1", broken), "Proceed Restart e-1 (SpecCorrected)"},
		"BrokenAlone": {"so does the only one", told(aged(), serving(1)), serving(1).with("e-0", broken).silent().with("e-0", broken), "Proceed Restart e-0 (SpecCorrected)"},
	}
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(p.want, p.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != p.says {
				t.Errorf("%s:\n got %s\nwant %s", p.reason, d, p.says)
			}
		})
	}
	d := etcd.Planner{}.Next(repaired, everyone(serving(3), stopped).with("e-1", broken).World, noon)
	if d.Step.Args[etcd.ArgVersion] != etcd.Newest || d.Step.Args[etcd.ArgSnapshots] != string(etcd.Frequent) {
		t.Errorf("it gets %v", d.Step.Args)
	}
}

func upgradedTo(version string) *etcdv1.EtcdCluster {
	c := wanted(3)
	c.Spec.Version = version
	return c
}

func TestPreviewOfTwoMinorReleases(t *testing.T) {
	round := func(from, to string) string {
		return strings.Join([]string{
			"Restart " + from + ": 2 of 3 voters serve, none may fail", "(Serving " + from + ")",
			"Restart e-2: 2 of 3 voters serve, none may fail", "(Serving e-2)",
			"MoveLeader " + from + ": 3 of 3 voters serve, 1 member may fail",
			"Restart " + to + ": 2 of 3 voters serve, none may fail", "(Serving " + to + ")",
		}, "\n")
	}
	want := round("e-1", "e-0") + "\n(SnapshotTaken e)\n" + round("e-0", "e-1") + "\nSettled AsDeclared"
	if diff := cmp.Diff(want, steps(aged(), everyone(serving(3), older).World)); diff != "" {
		t.Error(diff)
	}
}

func TestGateOfOldLogs(t *testing.T) {
	seen := everyone(serving(3), snapping).World
	s := lifecycle.Step{Name: etcd.Restart, Target: "e-1", Args: map[string]string{etcd.ArgVersion: "3.7.3"}}
	during, _ := etcd.Planner{}.Effect(wanted(3), seen, s)
	if r := lifecycle.Judge(etcd.Gates(), wanted(3), seen, during, s); len(r) != 1 || r[0].Gate != "SnapshotCoversOldLog" {
		t.Errorf("the gates say %+v", r)
	}
}

func TestOldLog(t *testing.T) {
	on := func(version string, s etcd.Snapshots) etcd.Member {
		return etcd.Member{Set: etcd.Set{Version: version}, Pod: etcd.Pod{Snapshots: s}}
	}
	cases := map[string]struct {
		first, storage, words string
		member                etcd.Member
		old                   bool
	}{
		"New":           {"3.6.16", "", "", on("3.6.16", ""), false},
		"Old":           {"3.5.35", "", "", on("3.5.35", ""), true},
		"Unknown":       {"", "3.6.0", "", on("3.6.16", ""), true},
		"Snapshots":     {"", "3.6.0", "", on("3.6.16", etcd.Frequent), false},
		"NotYet":        {"", "", "", on("3.6.16", etcd.Frequent), true},
		"Upgraded":      {"", "", "", on("3.7.3", ""), false},
		"Ended":         {"", "", "panic: unmarshal should never fail (proto: x)\n", on("3.7.3", ""), true},
		"EndedInAStack": {"", "", "go.etcd.io/etcd/pkg/v3/pbutil.MustUnmarshalMessage(...)\n", on("3.7.3", ""), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := wanted(3)
			want.Status.Bootstrap.FirstVersion = c.first
			if is := etcd.OldLog(want, c.member, c.storage, c.words); is != c.old {
				t.Errorf("its log is old: %t", is)
			}
		})
	}
}

func TestFatalMessage(t *testing.T) {
	cases := map[string]struct{ words, says string }{
		"Panic":       {"{\"level\":\"info\",\"msg\":\"x\"}\npanic: unmarshal should never fail (proto: wrong wireType)\n\ngoroutine 1 [running]:\n", "panic: unmarshal should never fail (proto: wrong wireType)"},
		"FullDisk":    {`.(*Tx).Commit\n tx.go:247"}` + "\n" + `{"level":"fatal","caller":"backend/batch_tx.go:282","msg":"failed to commit tx","error":"write /var/lib/etcd/data/member/snap/db: no space left on device","stacktrace":"x"}`, "failed to commit tx: write /var/lib/etcd/data/member/snap/db: no space left on device"},
		"FullDiskCut": {`snap/db: no space left on device","stacktrace":"go.etcd.io"}`, "no space left on device"},
		"Fatal":       {`{"level":"fatal","ts":"2026","caller":"x.go:1","msg":"discovery failed","error":"no space left on device."}`, "discovery failed: no space left on device"},
		"Stack":       {"pbutil.MustUnmarshalMessage(0x1)", "panic: unmarshal should never fail"},
		"Cut":         {`el":"fatal","msg":"x"}`, ""},
		"None":        {"", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if said := etcd.FatalMessage(c.words); said != c.says {
				t.Errorf("it says %q, want %q", said, c.says)
			}
		})
	}
}

// TestImageOfANewerReleaseIsIrreversible: the tag of the user's own image may be newer than spec.version says.
func TestImageOfANewerReleaseIsIrreversible(t *testing.T) {
	for image, want := range map[string]lifecycle.Class{
		"quay.io/coreos/etcd:v3.5.35":                lifecycle.ClassDisruptive,
		"quay.io/coreos/etcd:v3.6.16":                lifecycle.ClassIrreversible,
		"localhost:5000/etcd:3.6":                    lifecycle.ClassIrreversible,
		"localhost:5000/etcd":                        lifecycle.ClassDisruptive,
		"quay.io/coreos/etcd:stable":                 lifecycle.ClassDisruptive,
		"quay.io/coreos/etcd:v3.6.16@sha256:0123abc": lifecycle.ClassIrreversible,
	} {
		spec := wanted(1)
		spec.Spec.Version, spec.Spec.Image = "3.5", image
		seen := serving(1).with("e-0", func(m *etcd.Member) { m.Version, m.Pod.Version, m.Volume.Version = "3.5.35", "3.5.35", "3.5.35" })
		d := etcd.Planner{}.Next(spec, seen.World, noon)
		if d.Step.Name != etcd.Restart || d.Step.Class != want {
			t.Errorf("%s: the step is %s, %s", image, d.Step, d.Step.Class)
		}
	}
}

// A learner that never started gets the leader's log, which 3.7 cannot read yet (sim seed 4909).
func TestALearnerKeepsTheReleaseOfTheOthers(t *testing.T) {
	want := told(aged(), everyone(serving(3), snapping))
	seen := everyone(serving(3), snapping).with("e-3", func(m *etcd.Member) {
		*m = whole(3, "3.6.16")
		down(time.Second)(m)
		m.Role, m.Joined, m.Pod.Trouble = etcd.Learner, false, lifecycle.PodProblemUnschedulable
		m.Set.Revision, m.Pod.Revision = "former", "former"
	})
	d := etcd.Planner{}.Next(want, seen.World, noon)
	if d.Step.Name != etcd.Restart || d.Step.Target != "e-3" || d.Step.Args[etcd.ArgVersion] != "3.6.16" {
		t.Errorf("got %s with %v", d, d.Step.Args)
	}
}
