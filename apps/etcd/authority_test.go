package etcd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// swap is a cluster whose authorities were replaced, with a letter per member: 'o' runs with the
// old ones and 'n' with the new ones, 's' starts with the new ones, 'd' is on a failed node, and 't'
// runs with the old ones on a claim that is being deleted. With peers, members of different
// authorities refuse each other.
type swap struct {
	members string
	peers   bool
}

// groups counts the members that can agree with each other.
func (s swap) agree(as byte) int {
	old, renewed := strings.Count(s.members, "o")+strings.Count(s.members, "t"), strings.Count(s.members, "n")
	switch {
	case !s.peers:
		return old + renewed
	case as == 'n':
		return renewed
	}
	return old
}

func (s swap) quorum() bool {
	q := len(s.members)/2 + 1
	return s.agree('o') >= q || s.agree('n') >= q
}

// observed is the operator's observation: it can query only members with the new authorities.
func (s swap) observed(want *etcdv1.EtcdCluster) etcd.World {
	q := len(s.members)/2 + 1
	w := scene{etcd.World{Listed: s.agree('n') >= q && strings.Contains(s.members, "n"), ClusterID: 0xc1, Trust: "new"}}
	for i := range s.members {
		w = w.with(fmt.Sprintf("e-%d", i), func(m *etcd.Member) {
			*m = whole(i, etcd.Newest)
			m.Leads = false
			s.observe(m, s.members[i], etcd.Revision(want))
		})
	}
	if !w.Listed {
		for _, m := range w.Members {
			w = w.with(m.Name, func(m *etcd.Member) { m.ID, m.Role, m.Joined = 0, etcd.Outside, false })
		}
	}
	return w.World
}

func (s swap) observe(m *etcd.Member, is byte, revision string) {
	q := len(s.members)/2 + 1
	trust := map[byte]string{'o': ".old", 'n': ".new", 's': ".new", 'd': ".old", 't': ".old"}[is]
	m.Volume.Terminating = is == 't'
	m.Set.Revision, m.Pod.Revision = revision+trust, revision+trust
	switch is {
	case 'o', 't':
		ready := s.agree('o') >= q
		down(time.Hour)(m)
		m.Pod.Ready, m.Refused, m.PeersRefused = ready, true, s.peers
	case 'n':
		if s.agree('n') < q {
			down(time.Second)(m)
			m.PeersAccepted = true
		}
	case 's', 'd':
		down(time.Second)(m)
	}
}

// TestReplacedAuthorityRestartsMembers restarts every member with the new authorities, one at
// a time. While members accept each other no quorum is lost; otherwise it is lost during one restart.
func TestReplacedAuthorityRestartsMembers(t *testing.T) {
	cases := map[string]struct {
		swap
		gaps int
		ends string
	}{
		"Clients3":      {swap{"ooo", false}, 0, "nnn"},
		"Clients5":      {swap{"ooooo", false}, 0, "nnnnn"},
		"Clients5Down":  {swap{"ooood", false}, 0, "nnnnd"},
		"Clients3Down":  {swap{"ood", false}, 0, "ood"}, // a restart would break the quorum
		"Clients3Begun": {swap{"nso", false}, 0, "nnn"},
		"All1":          {swap{"o", true}, 1, "n"},
		"All2":          {swap{"oo", true}, 1, "nn"},
		"All3":          {swap{"ooo", true}, 1, "nnn"},
		"All4":          {swap{"oooo", true}, 1, "nnnn"},
		"All5":          {swap{"ooooo", true}, 1, "nnnnn"},
		"All7":          {swap{"ooooooo", true}, 1, "nnnnnnn"},
		"All3Begun":     {swap{"noo", true}, 1, "nnn"},
		"All5Down":      {swap{"ooood", true}, 0, "ooood"}, // it would take too long without a quorum
		"All5DownBegun": {swap{"nnood", true}, 0, "nnnnd"}, // no group has a quorum
		"All3Down":      {swap{"ood", true}, 0, "ood"},

		// A restart would end the pod that keeps a deleted claim: it waits for its replacement.
		"ClientsDoomed":      {swap{"oto", false}, 0, "ntn"},
		"ClientsDoomedFirst": {swap{"too", false}, 0, "tnn"},
		"ClientsTwoDoomed":   {swap{"tot", false}, 0, "tnt"},
		"AllDoomed":          {swap{"oto", true}, 1, "ntn"},
		"AllTwoDoomed":       {swap{"tot", true}, 0, "tot"}, // too few could restart to form a quorum
		"AllDoomed5":         {swap{"ttooo", true}, 1, "ttnnn"},
		"OneDoomed":          {swap{"t", true}, 0, "t"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := told(wanted(int32(len(c.members))), serving(len(c.members)))
			gaps, story := heal(t, want, &c.swap)
			if c.members != c.ends || gaps != c.gaps {
				t.Errorf("it ends as %s after %d gaps, want %s after %d:\n%s", c.members, gaps, c.ends, c.gaps, strings.Join(story, "\n"))
			}
		})
	}
}

// heal performs the planner's steps until there are none, and counts the restarts without a
// quorum.
func heal(t *testing.T, want *etcdv1.EtcdCluster, s *swap) (gaps int, story []string) {
	t.Helper()
	for range 30 {
		seen := s.observed(want)
		d := etcd.Planner{}.Next(want, seen, noon)
		story = append(story, s.members+" "+strings.SplitN(d.String(), ":", 2)[0])
		at := strings.IndexByte(s.members, 's')
		switch {
		case at >= 0:
			if d.Outcome == lifecycle.OutcomeProceed {
				t.Fatalf("%s while another member starts\n%s", d, strings.Join(story, "\n"))
			}
			s.set(at, 'n')
		case d.Outcome != lifecycle.OutcomeProceed || d.Step.Name != etcd.Restart:
			return gaps, story
		default:
			during, _ := etcd.Planner{}.Effect(want, seen, d.Step)
			if r := lifecycle.Judge(etcd.Gates(), want, seen, during, d.Step); len(r) > 0 {
				t.Fatalf("%s is held by %s\n%s", d, r[0].Gate, strings.Join(story, "\n"))
			}
			had := s.quorum()
			s.set(int(etcd.Number(d.Step.Target)), 's')
			if had && !s.quorum() {
				gaps++
			}
		}
	}
	t.Fatalf("it never ends:\n%s", strings.Join(story, "\n"))
	return 0, nil
}

func (s *swap) set(at int, is byte) { s.members = s.members[:at] + string(is) + s.members[at+1:] }

// TestReplacedAuthorityDestroysNothing checks the worlds in which a restart would destroy data.
func TestReplacedAuthorityDestroysNothing(t *testing.T) {
	memory := told(wanted(3), serving(3))
	memory.Spec.Storage.Medium = etcdv1.MediumMemory
	three := told(wanted(3), serving(3))
	lost2 := scene{swap{"ooo", true}.observed(three)}.with("e-0", lost).with("e-1", lost)
	broken := swap{"ooo", true}.observed(three)
	broken.Certificates = "the Secret is broken"
	unreachable := serving(3).silent()
	unreachable.Trust = "new"
	cases := map[string]struct {
		want *etcdv1.EtcdCluster
		seen etcd.World
		says string
	}{
		"InMemory":    {memory, swap{"ooo", true}.observed(memory), "Blocked AuthoritySwapped"},
		"DataLost":    {three, lost2.World, "Blocked QuorumLost"},
		"Broken":      {three, broken, "Blocked CertificatesUnusable"},
		"Unreachable": {three, unreachable.World, "Wait QuorumBack e (QuorumAway)"},
		"NothingLeft": {three, swap{"ood", true}.observed(three), "Blocked AuthoritySwapped"},
		"LeaderLast":  {three, swap{"ooo", false}.observed(three), "Proceed Restart e-1 (AuthoritySwapped)"},
		"OnlyDoomed":  {three, swap{"ttt", false}.observed(three), "Blocked AuthoritySwapped"},
		"TwoDoomed":   {three, swap{"tto", true}.observed(three), "Blocked AuthoritySwapped"},
		"Refused":     {three, swap{"tnn", true}.observed(three), "Proceed RemoveMember e-0 (MemberDead)"}, // etcd adds none while one is away
		"Accepted":    {three, swap{"tnn", false}.observed(three), "Proceed AddLearner e-3 (VolumeDeleted)"},
	}
	for name, c := range cases {
		d := etcd.Planner{}.Next(c.want, c.seen, noon)
		if got := strings.SplitN(d.String(), ":", 2)[0]; got != c.says {
			t.Errorf("%s: %s, want %s", name, d, c.says)
		}
	}
}

// TestEverySmallWorldOfAuthorities: 'R' serves the other members, and refuses Governor because it
// runs with a replaced authority; 'U' does so on a claim that is being deleted.
func TestEverySmallWorldOfAuthorities(t *testing.T) {
	smallWorlds("sRUtTdDxl", 4, func(code string) {
		if !strings.ContainsAny(code, "st") || !quorumReady(world(code).World) {
			return // no member tells Governor the list
		}
		if u := strings.Count(code, "U"); len(code) > 3 && u > 1 || u > 0 && strings.ContainsAny(code, "xTdD") {
			return // KeepsQuorum holds the removals: too few members prove by their answers that they serve
		}
		want := wanted(3)
		want.Spec.Version = "3.6.16"
		want.Status.Bootstrap.Formed, want.Status.Bootstrap.FirstVersion = true, "3.5.35"
		seen := world(code)
		seen.Trust = "new"
		for _, m := range seen.Members {
			seen = seen.with(m.Name, func(m *etcd.Member) {
				if !m.Refused {
					m.Pod.Revision, m.Set.Revision = m.Pod.Revision+".new", m.Set.Revision+".new"
				}
			})
		}
		follow(t, code, want, seen.World)
	})
}

// refusing runs with a replaced authority: it serves the other members, and refuses Governor.
func refusing(m *etcd.Member) {
	m.Health, m.Version, m.Index, m.Leads = etcd.Unknown, "", 0, false
	m.Refused, m.Pod.Revision, m.Set.Revision = true, m.Pod.Revision+".old", m.Set.Revision+".old"
}

// A member that started with the current authority and an earlier spec, e.g. with a Secret that is gone, cannot wait for
// itself: it gets the current spec. Its data stay.
func TestMemberWithTheCurrentAuthorityGetsTheCurrentSpec(t *testing.T) {
	want := told(wanted(3), serving(3))
	earlier := func(m *etcd.Member) { m.Set.Revision, m.Pod.Revision = "earlier.new", "earlier.new" }
	cases := map[string]struct {
		reason string
		edit   func(*etcd.Member)
		step   string
	}{
		"Starts":  {"it has the current spec, and needs time", func(*etcd.Member) {}, "Serving e-0"},
		"Earlier": {"it has an earlier spec", earlier, "Restart e-0"},
		"Ready":   {"its pod is ready, so the next member restarts", func(m *etcd.Member) { earlier(m); m.Pod.Ready = true }, "Restart e-1"},
		"Claim":   {"its data would go with its pod", func(m *etcd.Member) { earlier(m); m.Volume.Terminating = true }, "Serving e-0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			seen := scene{swap{"soo", false}.observed(want)}.with("e-0", c.edit)
			d := etcd.Planner{}.Next(want, seen.World, noon)
			if d.Step.String() != c.step {
				t.Fatalf("%s: %s", c.reason, d)
			}
			if d.Step.Name == etcd.Restart && d.Step.Args[etcd.ArgRevision] != etcd.Revision(want)+".new" {
				t.Errorf("%s: %v", d, d.Step.Args)
			}
		})
	}
}
