package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// placed is a settled world whose members are in the zones, a letter each, and in which a new
// member could run in others. Each zone has one node.
func placed(members, places string) scene {
	s := serving(len(members))
	for i, zone := range members {
		s = s.with(fmt.Sprintf("e-%d", i), func(m *etcd.Member) { m.Pod.Zone, m.Pod.Node = string(zone), "node-"+string(zone) })
	}
	for _, zone := range places {
		s.Places = append(s.Places, etcd.Place{Node: "node-" + string(zone), Zone: string(zone)})
	}
	return s
}

func automatic(size int) *etcdv1.EtcdCluster {
	c := wanted(int32(size))
	c.Spec.Rebalance = etcdv1.RebalanceAutomatic
	return c
}

func zones(w etcd.World) string {
	var all []string
	for _, m := range w.Members {
		all = append(all, m.Pod.Zone)
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func TestRebalance(t *testing.T) {
	manual := wanted(3)
	broken := placed("aab", "abc").with("e-1", down(0))
	alarm := placed("aab", "abc").with("e-0", func(m *etcd.Member) { m.Alarms = []string{"NOSPACE"} })
	joined := placed("aabc", "abc").with("e-3", hidden)
	leads := placed("aabc", "abc").with("e-0", func(m *etcd.Member) { m.Leads = false }).with("e-1", func(m *etcd.Member) { m.Leads, m.Index = true, 1001 })
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		says   string
	}{
		"Adds":      {"another member joins first", automatic(3), placed("aab", "abc"), "Proceed AddLearner e-3 (MemberMisplaced)"},
		"Manual":    {"the spec does not request it", manual, placed("aab", "abc"), "Settled AsDeclared"},
		"NoPlace":   {"no zone has room that would help", automatic(3), placed("aab", "ab"), "Settled AsDeclared"},
		"Spread":    {"each zone may be lost", automatic(3), placed("abc", "abc"), "Settled AsDeclared"},
		"Tolerable": {"two of five may be lost", automatic(5), placed("aabbc", "abcd"), "Settled AsDeclared"},
		"Five":      {"three of five are in a zone", automatic(5), placed("aaabc", "abc"), "Proceed AddLearner e-5 (MemberMisplaced)"},
		"Broken":    {"no member moves while one is unavailable", automatic(3), broken, "Wait Serving e-1 (MemberNotServing)"},
		"Alarm":     {"no member moves while etcd raises an alarm", automatic(3), alarm, "Blocked AlarmRaised"},
		"Exposes":   {"the new member serves clients before another is removed", automatic(3), joined, "Proceed AddToService e-3 (MemberServes)"},
		"Leader":    {"the leadership moves before the leader is removed", automatic(3), leads, "Proceed MoveLeader e-0 (MemberMisplaced)"},
		"Wrong":     {"a new member in the wrong zone is removed again", automatic(3), placed("abbb", "abc"), "Proceed RemoveMember e-3 (MemberMisplaced)"},
		"Removes":   {"then a member in the crowded zone is removed", automatic(3), placed("aabc", "abc"), "Proceed RemoveMember e-1 (MemberMisplaced)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.want, c.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != c.says {
				t.Errorf("%s:\n got %s\nwant %s", c.reason, d, c.says)
			}
			if d.Step.Reason == "MemberMisplaced" && (d.Step.Intent != lifecycle.IntentChange || !d.Step.Class.IsDisruptive()) {
				t.Errorf("%s is %s and %s: policies must be able to hold it", d.Step, d.Step.Intent, d.Step.Class)
			}
		})
	}
}

// TestRebalanceEnds follows the rules from every spread over three zones, for all zones with room
// and all placements of new members: it ends, and never with a worse spread.
func TestRebalanceEnds(t *testing.T) {
	for _, size := range []int{3, 4, 5} {
		for _, members := range words("abc", size) {
			for _, places := range []string{"", "a", "ab", "abc", "bc", "c"} {
				for _, lands := range []string{"best", "a", "b", "c"} {
					rebalanced(t, members, places, lands)
				}
			}
		}
	}
}

// TestRebalanceIgnoresOtherNodes: the scheduler puts each new member into the crowded zone, and nodes
// of an autoscaled pool come and go. Each try copies all data, so few follow.
func TestRebalanceIgnoresOtherNodes(t *testing.T) {
	want, seen := automatic(3), placed("aab", "c").World
	p, copies, own := etcd.Planner{}, 0, seen.Places
	want.Status.Bootstrap.Formed = true
	for day := range 100 {
		seen.Places = slices.Clone(own)
		for pool := range 1 + day*7%40 {
			seen.Places = append(seen.Places, etcd.Place{Node: fmt.Sprint("pool-", pool+day), Zone: "c"})
		}
		for range 60 {
			p.Status(want, seen)
			d := p.Next(want, seen, noon)
			if d.Outcome == lifecycle.OutcomeSettled {
				break
			}
			if d.Step.Name == etcd.AddLearner {
				copies++
			}
			_, after := p.Effect(want, seen, d.Step)
			seen = land(after, 3, "a")
		}
	}
	if copies > 6 || copies == 0 {
		t.Errorf("100 changes of other nodes caused %d copies of all data", copies)
	}
}

// words are all words of so many of the letters.
func words(letters string, n int) []string {
	if n == 0 {
		return []string{""}
	}
	var all []string
	for _, rest := range words(letters, n-1) {
		for _, l := range letters {
			all = append(all, rest+string(l))
		}
	}
	return all
}

func rebalanced(t *testing.T, members, places, lands string) {
	t.Helper()
	want, seen := automatic(len(members)), placed(members, places).World
	p, before := etcd.Planner{}, crowd(seen)
	want.Status.Bootstrap.Formed = true
	for range 60 {
		p.Status(want, seen)
		d := p.Next(want, seen, noon)
		if d.Outcome == lifecycle.OutcomeSettled {
			if now := crowd(seen); now > before || lands == "best" && now > best(len(members), members+places) && improves(members, places) {
				t.Errorf("%s with room in %q: new members land in %s, and it ends as %s", members, places, lands, zones(seen))
			}
			return
		}
		during, after := p.Effect(want, seen, d.Step)
		if r := lifecycle.Judge(etcd.Gates(), want, seen, during, d.Step); len(r) > 0 && d.Outcome == lifecycle.OutcomeProceed {
			t.Fatalf("%s is held by %s", d.Step, r[0].Gate)
		}
		if seen = after; lands != "best" {
			seen = land(seen, len(members), lands)
		}
	}
	t.Errorf("%s with room in %q never ends when new members land in %s", members, places, lands)
}

// land schedules new members.
func land(seen etcd.World, size int, zone string) etcd.World {
	s := scene{seen}
	for _, m := range seen.Members {
		if etcd.Number(m.Name) >= int64(size) && m.Pod.Node != "" {
			s = s.with(m.Name, func(m *etcd.Member) { m.Pod.Zone, m.Pod.Node = zone, "node-"+zone })
		}
	}
	return s.World
}

// crowd is the number of voters in the most crowded zone.
func crowd(w etcd.World) int {
	most, in := 0, map[string]int{}
	for _, m := range w.Members {
		in[m.Pod.Zone]++
		most = max(most, in[m.Pod.Zone])
	}
	return most
}

// improves reports that the loss of a zone breaks the quorum, and that a zone with room has at
// least two members fewer.
func improves(members, places string) bool {
	w := placed(members, places).World
	most := crowd(w)
	for _, p := range places {
		if len(members)-most < len(members)/2+1 && strings.Count(members, string(p))+1 < most {
			return true
		}
	}
	return false
}

// best is the lowest possible number of members in the most crowded of the zones, as far as
// the quorum needs.
func best(size int, letters string) int {
	kinds := map[rune]bool{}
	for _, l := range letters {
		kinds[l] = true
	}
	return max((size+len(kinds)-1)/len(kinds), size-size/2-1)
}
