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
		"RemoveDoomed":  {"its claim and the finalizer are gone, and its replacement serves", serving(4).with("e-0", earlier), lifecycle.Step{Name: etcd.RemoveMember, Target: "e-0"}, ""},
		"DeleteDoomed":  {"unless etcd still has it", serving(3).with("e-0", earlier), lifecycle.Step{Name: etcd.DeleteMember, Target: "e-0"}, "KeepsData"},
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
		"Empty":   {"a disabled bootstrap", `{"level":"fatal","ts":"2026-01-01T00:00:00Z","caller":"etcdmain/etcd.go:204","msg":"discovery failed","error":"couldn't find local name \"e-0\" in the initial cluster configuration","stacktrace":"etcdmain.startEtcdOrProxyV2"}`, "the data directory is empty, or its log is missing"},
		"Corrupt": {"a broken log", `panic: walpb: crc mismatch`, "the log is corrupt (crc mismatch)"},
		"Lost":    {"a log that is shorter than it was", `{"level":"panic","msg":"tocommit(8) is out of range [lastIndex(3)]. Was the raft log corrupted, truncated, or lost?"}`, "the log has lost entries"},
		"Missing": {"a missing database, with only the stack trace left",
			"zap.(*Logger).Panic(0x7ffd48200c8d)\n\t/zap/logger.go:285 +0x4b\ngo.etcd.io/etcd/server/v3/etcdserver.recoverSnapshot({{0x7ffd48200c8d",
			"the database is missing or corrupt"},
		"Panic":    {"the same before 3.4", "2026-01-01 00:00:00.000000 C | raft: tocommit(8) is out of range [lastIndex(3)]", "the log has lost entries"},
		"Frame":    {"the same with only the stack left", "\t/zap/logger.go:285 +0x4b\ngo.etcd.io/raft/v3.(*raftLog).commitTo(0xc0001ac000?, 0x8)\n\t/raft/log.go:324 +0x1", "the log has lost entries"},
		"Key":      {"a client's key in a warning", slowRequest(`tocommit(`), ""},
		"KeyCut":   {"the same if the line is cut", slowRequest(`tocommit(`)[200:], ""},
		"KeyFrame": {"a key that looks like a stack", slowRequest(`raft.(*raftLog).commitTo(0x1)\n`), ""},
		"KeyError": {"a key that looks like an error", slowRequest(`\\\",\\\"error\\\":\\\"invalid database\\\",\\\"stacktrace\\\":\\\"`)[180:], ""},
		"OldKey":   {"a key in a warning before 3.4", `2026-01-01 00:00:00.000000 W | etcdserver: read-only range request "key:\"crc mismatch\" " took too long`, ""},
		"Value":    {"a fatal line with a key elsewhere", `{"level":"fatal","msg":"failed","request":"crc mismatch"}`, ""},
		"Header":   {"a database without its first page", `member/snap/db","error":"invalid database","stacktrace":"go.etcd.io`, "the database is corrupt"},
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

// slowRequest is the warning of etcd 3.6 about a slow request for a key, as escaped in its log.
func slowRequest(key string) string {
	return `{"level":"warn","ts":"2026-01-01T00:00:00Z","caller":"txn/util.go:93","msg":"apply request took too long","took":"312ms","expected-duration":"100ms","prefix":"read-only range ","request":"key:\"` +
		key + `\" range_end:\"\\000\" ","response":"range_response_count:100000 size:1","error":null}`
}
