package etcd_test

import (
	"testing"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

func TestGates(t *testing.T) {
	learner := serving(3).with("e-3", func(m *etcd.Member) { m.Role = etcd.Learner; m.Set.Exists = true })
	restart := func(name, version string) lifecycle.Step {
		return lifecycle.Step{Name: etcd.Restart, Target: name, Args: map[string]string{"version": version}}
	}
	cases := map[string]struct {
		reason string
		seen   scene
		step   lifecycle.Step
		holds  string
	}{
		"RestartOne":    {"two of three are a quorum", serving(3), restart("e-1", "3.6.16"), ""},
		"RestartSecond": {"one of three is none", serving(3).with("e-0", down(time.Second)), restart("e-1", "3.6.16"), "KeepsQuorum"},
		"RestartSick":   {"restarting a failed member costs nothing", serving(3).with("e-1", down(time.Second)), restart("e-1", "3.6.16"), ""},
		"RemoveOnly":    {"the last voter is never removed, even while it is down", serving(1).with("e-0", down(time.Hour)), lifecycle.Step{Name: etcd.RemoveMember, Target: "e-0"}, "KeepsQuorum"},
		"RestartOnly":   {"a cluster of one accepts its restart", serving(1), restart("e-0", "3.6.16"), ""},
		"RemoveDead":    {"removing a lost member makes nothing worse", serving(3).with("e-1", lost), lifecycle.Step{Name: etcd.RemoveMember, Target: "e-1"}, ""},
		"RemoveGood":    {"removing a serving one does", serving(3).with("e-1", lost), lifecycle.Step{Name: etcd.RemoveMember, Target: "e-0"}, "KeepsQuorum"},
		"FirstLearner":  {"one may join", serving(3), lifecycle.Step{Name: etcd.AddLearner, Target: "e-3"}, ""},
		"TwoLearners":   {"two may not", learner, lifecycle.Step{Name: etcd.AddLearner, Target: "e-4"}, "OneLearner"},
		"VoterVolume":   {"a voter's volume stays", serving(3), lifecycle.Step{Name: etcd.DeleteMember, Target: "e-1"}, "KeepsData"},
		"Farewell":      {"unless the cluster is deleted", serving(3), lifecycle.Step{Name: etcd.DeleteMember, Target: "e-1"}, ""},
		"TwoMinors":     {"two minor releases at once are one too many", serving(3), restart("e-1", "3.4.23"), "OneMinorApart"},
		"PromoteSecond": {"a learner that has caught up counts when it votes (sim seed 83)", serving(1).with("e-1", func(m *etcd.Member) {
			*m = whole(1, etcd.Newest)
			m.Role, m.Pod.Ready = etcd.Learner, false
		}), lifecycle.Step{Name: etcd.Promote, Target: "e-1"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := wanted(3)
			if name == "Farewell" {
				want = deleted(want)
			}
			during, _ := etcd.Planner{}.Effect(want, c.seen.World, c.step)
			got := ""
			if r := lifecycle.Judge(etcd.Gates(), want, c.seen.World, during, c.step); len(r) > 0 {
				got = r[0].Gate
			}
			if got != c.holds {
				t.Errorf("%s: held by %q, want %q", c.reason, got, c.holds)
			}
		})
	}
}

func TestDiagnose(t *testing.T) {
	cases := map[string]struct{ reason, words, want string }{
		"Empty":   {"a disabled bootstrap", `"error":"couldn't find local name \"e-0\" in the initial cluster configuration"`, "the data directory is empty"},
		"Corrupt": {"a broken log", `panic: walpb: crc mismatch`, "the log is corrupt (crc mismatch)"},
		"Lost":    {"a log that is shorter than it was", `tocommit(8) is out of range [lastIndex(3)]`, "the log has lost entries"},
		"Missing": {"a missing database, with only the stack trace left",
			"zap.(*Logger).Panic(0x7ffd48200c8d)\n\t/zap/logger.go:285 +0x4b\ngo.etcd.io/etcd/server/v3/etcdserver.recoverSnapshot({{0x7ffd48200c8d",
			"the database is missing or corrupt"},
		"Header": {"a database without its first page", `member/snap/db","error":"invalid database","stacktrace":"go.etcd.io`, "the database is corrupt"},
		"Pages": {"a database with pages of something else",
			"go.etcd.io/bbolt.(*DB).freepages(0x12ce6e078488)\n\t/bbolt@v1.4.3/db.go:1251 +0x22e", "the database is corrupt"},
		"Locked": {"a database that another process has open is whole",
			`member/snap/db","error":"timeout","stacktrace":"` + "\npanic: failed to open database\ngo.etcd.io/etcd/server/v3/storage/backend.newBackend({{", ""},
		"Flag": {"a wrong flag says nothing about data", `unknown flag: --x`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := etcd.Diagnose(c.words); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}
