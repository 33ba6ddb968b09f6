package etcd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// states are the states that a member may be in, by a letter.
var states = map[rune]func(*etcd.Member){
	's': func(*etcd.Member) {},
	'o': older,
	'd': down(time.Second),
	'D': down(time.Hour),
	'x': lost,
	'c': trouble(lifecycle.PodProblemCrashLoopBackOff, time.Second),
	'n': func(m *etcd.Member) { down(time.Second)(m); m.Set, m.Pod = etcd.Set{}, etcd.Pod{} }, // no StatefulSet
	'l': func(m *etcd.Member) { hidden(m); m.Role, m.Pod.Ready, m.Index = etcd.Learner, false, 10 },
	'v': hidden, // a voter that the client Service does not select yet
	'u': unlabelled,
	'm': func(m *etcd.Member) { // a learner with all data that serves no client
		down(15 * time.Second)(m)
		hidden(m)
		m.Role, m.Pod.Ready = etcd.Learner, true
	},
	'a': func(m *etcd.Member) { *m = etcd.Member{Name: m.Name, ID: m.ID, Role: etcd.Learner} }, // added, not started
	'r': removed,
	'H': removedByHand,
	'Q': onlyClaim,
	'f': foreign,
	'C': corrupted,
	'W': func(m *etcd.Member) { corrupted(m); m.Pod.Ready = false },
	'M': func(m *etcd.Member) { m.Volume.Removing = m.Volume.Exists }, // etcd refused its removal
	't': claimTerminating,
	'T': func(m *etcd.Member) { down(time.Second)(m); m.Volume.Terminating, m.Pod = true, etcd.Pod{} }, // and its pod is deleted
	'z': scaledToZero,
	'i': func(m *etcd.Member) { // created from an edited template, with an image that does not exist
		trouble(lifecycle.PodProblemImagePullBackOff, time.Hour)(m)
		m.Set.Edited, m.Pod.Stale = "spec.template.spec.containers", true
	},
	'k': held,
	'j': func(m *etcd.Member) { held(m); claimTerminating(m) },
	'K': func(m *etcd.Member) { down(time.Hour)(m); held(m); m.Pod = etcd.Pod{} }, // and its pod is deleted
	'A': func(m *etcd.Member) { // added, and the name of its ConfigMap is taken
		*m = etcd.Member{Name: m.Name, ID: m.ID, Role: etcd.Learner, Obstacle: etcd.Obstacle{Kind: "ConfigMap", Name: m.Name + "-bootstrap"}}
	},
	'p': func(m *etcd.Member) { m.Pod.Stripped = true },
	'q': func(m *etcd.Member) { m.Volume.Stripped = m.Volume.Exists },
	'y': func(m *etcd.Member) { m.PeerURL = strings.Replace(m.PeerURL, ".svc:", ".svc.cluster.local:", 1) }, // changed with etcdctl
	'S': sidecar,
	'B': func(m *etcd.Member) { sidecar(m); m.Pod.Stale = false }, // from the template of now
	'e': misdeclared(time.Hour),                                   // runs, and serves only with another spec
	'E': refused,
	'g': func(m *etcd.Member) { down(time.Hour)(m); m.Silence = "the node n no longer exists" },
	'R': refusing,
	'U': func(m *etcd.Member) { refusing(m); claimTerminating(m) },
	'h': func(m *etcd.Member) {
		m.Unmanaged, m.Set, m.Volume, m.Pod = true, etcd.Set{}, etcd.Volume{}, etcd.Pod{}
	},
}

// The states by their cause: faults and the operator itself, or manual changes of the
// operator's objects.
const (
	letters  = "sodDxcnlmarhvueg"
	byHand   = "tTzipqySBEHQMfCW"
	inTheWay = "kjKA"
)

// smallWorlds calls visit with every multiset of the states of up to so many members,
// in both orders, as long as etcd could be in it.
func smallWorlds(letters string, most int, visit func(code string)) {
	var extend func(code string, from int)
	extend = func(code string, from int) {
		if several(code, "lmaA") || several(code, "vu") {
			return
		}
		if code != "" && !onlyClaims(code) {
			visit(code)
			if back := reversed(code); back != code {
				visit(back)
			}
		}
		for i := from; i < len(letters) && len(code) < most; i++ {
			extend(code+letters[i:i+1], i)
		}
	}
	extend("", 0)
}

// onlyClaims reports a world of claims without a cluster, which no observation shows.
func onlyClaims(code string) bool {
	voters, _ := readyVoters(world(code).World)
	return voters == 0 && strings.Contains(code, "Q")
}

// several members are in any of the states.
func several(code, states string) bool {
	n := 0
	for _, s := range states {
		n += strings.Count(code, string(s))
	}
	return n > 1
}

func reversed(s string) string {
	back := ""
	for _, r := range s {
		back = string(r) + back
	}
	return back
}

// world reads a code. The first member that serves leads.
func world(code string) scene {
	s := serving(0)
	for i, r := range code {
		s = s.with(fmt.Sprintf("e-%d", i), func(m *etcd.Member) {
			*m = whole(i, etcd.Newest)
			m.Leads = false
			states[r](m)
			if m.Unmanaged {
				m.Name = fmt.Sprintf("odd%d", i)
			}
		})
	}
	for _, m := range s.Members {
		if m.Role == etcd.Voter && m.Health == etcd.Healthy {
			return s.with(m.Name, func(m *etcd.Member) { m.Leads = true })
		}
	}
	return s
}

// atMost is fewer, unless all worlds are wanted: GOVERNOR_WORLDS=all takes ten minutes of a CPU.
func atMost(all, fewer int) int {
	if os.Getenv("GOVERNOR_WORLDS") == "all" {
		return all
	}
	return fewer
}

// TestEverySmallWorld follows the planner from every small world to several sizes. To the usual ones it follows three members
// in states that users cause.
func TestEverySmallWorld(t *testing.T) {
	usual := []string{"1-3.6.16", "3-3.6.16", "3-3.7.3", "5-3.6.16"}
	for _, size := range []int32{1, 2, 3, 4, 5, 7, 9} {
		for _, version := range []string{"3.6.16", "3.7.3"} {
			name := fmt.Sprintf("%d-%s", size, version)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				most, byUsers, worlds := 3, atMost(3, 2), 0
				if slices.Contains(usual, name) {
					byUsers = 3
				}
				switch {
				case size == 3 && version == "3.6.16":
					most = atMost(5, 4)
				case size%2 == 1 && size <= 5:
					most = 4
				}
				look := func(code string) {
					worlds++
					want := wanted(3)
					want.Spec.Size, want.Spec.Version = size, version
					want.Status.Bootstrap.Formed, want.Status.Bootstrap.FirstVersion = true, "3.5.35"
					seen := world(code)
					if healthy, voters := answering(seen.World); healthy < voters/2+1 {
						follow(t, code+" forgotten", want.DeepCopy(), seen.silent().World)
						told(want, seen)
						seen = seen.silent()
					}
					follow(t, code, want, seen.World)
				}
				smallWorlds(letters, most, look)
				smallWorlds(letters+byHand, byUsers, look)
				if size == 3 && version == "3.6.16" {
					smallWorlds(letters+byHand+inTheWay, 3, look)
				}
				t.Logf("%d worlds", worlds)
			})
		}
	}
}

// follow follows the planner until it settles: every wait ends, and each step has its predicted
// Effect.
func follow(t *testing.T, code string, want *etcdv1.EtcdCluster, seen etcd.World) {
	t.Helper()
	var story []string
	p, now := etcd.Planner{}, noon
	for range 120 {
		p.Status(want, seen)
		d := p.Next(want, seen, now)
		story = append(story, strings.SplitN(d.String(), ":", 2)[0])
		switch d.Outcome {
		case lifecycle.OutcomeSettled:
			settledWell(t, code, want, seen, story)
			return
		case lifecycle.OutcomeBlocked:
			if stoppedBeside(seen, d) {
				return
			}
			if d.Reason == "AlarmRaised" && strings.ContainsAny(code, "CW") {
				return
			}
			if d.Reason == "ContainerCannotStart" && strings.ContainsAny(code, "SB") {
				return
			}
			if d.Reason == "AuthoritySwapped" && !canRestart(seen) {
				return
			}
			if d.Reason != "QuorumLost" && d.Reason != "CrashLoopBackOff" && d.Reason != "ChangeFailed" && d.Reason != "MemberUnidentified" {
				t.Fatalf("%s to %d %s is blocked: %s\n%s", code, want.Spec.Size, want.Spec.Version, d, strings.Join(story, "\n"))
			}
			return
		case lifecycle.OutcomeNone, lifecycle.OutcomeRetry:
			t.Fatalf("%s: %s is no answer", code, d)
		}
		during, after := p.Effect(want, seen, d.Step)
		r := lifecycle.Judge(etcd.Gates(), want, seen, during, d.Step)
		if len(r) > 0 && r[0].Gate == etcd.KeepsQuorum.Name && strings.ContainsAny(code, "SB") {
			return // no member is removed while only pods that are not ready hold the quorum
		}
		if len(r) > 0 && d.Outcome == lifecycle.OutcomeProceed {
			t.Fatalf("%s to %d: %s is held for ever by %s: %s\n%s", code, want.Spec.Size, d.Step, r[0].Gate, r[0].Message, strings.Join(story, "\n"))
		}
		careful(t, code, want, seen, during, d)
		seen = after
	}
	t.Fatalf("%s to %d %s never settles:\n%s", code, want.Spec.Size, want.Spec.Version, strings.Join(story[:40], "\n"))
}

// canRestart reports whether the quorum survives the restart of a member that refuses Governor.
func canRestart(seen etcd.World) bool { voters, ready := readyVoters(seen); return ready-1 > voters/2 }

func quorumReady(seen etcd.World) bool { voters, ready := readyVoters(seen); return ready > voters/2 }

// readyVoters counts the voters, and those that the kubelet's probe finds ready.
func readyVoters(seen etcd.World) (voters, ready int) {
	for _, m := range seen.Members {
		if m.Role == etcd.Voter {
			voters++
			if m.Pod.Ready {
				ready++
			}
		}
	}
	return voters, ready
}

// stoppedBeside reports that only a held StatefulSet is left: every member serves. Without a
// quorum nothing else is possible either.
func stoppedBeside(seen etcd.World, d lifecycle.Decision) bool {
	if d.Reason != "DeletionStuck" {
		return false
	}
	for _, m := range seen.Members {
		if etcd.KeptVolume(seen, m) {
			continue
		}
		if seen.Listed && (m.Role != etcd.Voter || m.Health != etcd.Healthy || !m.Pod.Ready || m.Volume.Terminating) {
			return false
		}
	}
	return true
}

// careful checks that a step never breaks a quorum, never adds a second learner, and destroys
// nothing while the member list is unknown.
func careful(t *testing.T, code string, want *etcdv1.EtcdCluster, seen, during etcd.World, d lifecycle.Decision) {
	t.Helper()
	if etcd.KeepsQuorum.Violation(want, seen) == 0 && etcd.KeepsQuorum.Violation(want, during) > 0 {
		t.Fatalf("%s: %s breaks the quorum", code, d)
	}
	if etcd.OneLearner.Violation(want, seen) == 0 && etcd.OneLearner.Violation(want, during) > 0 {
		t.Fatalf("%s: %s makes a second learner", code, d)
	}
	if d.Step.Class == lifecycle.ClassDestructive && !seen.Listed {
		t.Fatalf("%s: %s destroys without a member list", code, d)
	}
	if answer, voters := answering(during); d.Step.Class.IsDestructive() && d.Step.Name != etcd.Restart && answer < voters/2+1 {
		t.Fatalf("%s: %s leaves %d copies that answer, of %d", code, d, answer, voters)
	}
}

// answering counts the voters, and those that answer and have a lasting volume.
func answering(w etcd.World) (answer, voters int) {
	for _, m := range w.Members {
		if m.Role != etcd.Voter {
			continue
		}
		voters++
		if m.Health == etcd.Healthy && (m.Volume.Exists || m.Unmanaged) {
			answer++
		}
	}
	return answer, voters
}

func settledWell(t *testing.T, code string, want *etcdv1.EtcdCluster, seen etcd.World, story []string) {
	t.Helper()
	s := want.Status
	seen.Members = slices.DeleteFunc(slices.Clone(seen.Members), func(m etcd.Member) bool { return etcd.KeptVolume(seen, m) })
	if s.Ready != fmt.Sprintf("%d/%d", want.Spec.Size, want.Spec.Size) || len(seen.Members) != int(want.Spec.Size) ||
		s.Version.Current != want.Spec.Version || s.Phase != etcdv1.PhaseRunning || s.Leader == "" {
		t.Fatalf("%s to %d settles badly: %+v\n%s", code, want.Spec.Size, s, strings.Join(story, "\n"))
	}
	for _, m := range seen.Members {
		if m.Set.Exposure != etcd.Exposed || m.Pod.Exposure != etcd.Exposed {
			t.Fatalf("%s to %d: the client Service does not select %s\n%s", code, want.Spec.Size, m.Name, strings.Join(story, "\n"))
		}
	}
}
