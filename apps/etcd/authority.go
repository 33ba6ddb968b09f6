package etcd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

const authoritySwapped = "AuthoritySwapped"

// distrusted restarts members that run with an authority which has been swapped or
// lost: the operator or the other members refuse their certificates, or they refuse
// those. etcd reads its authorities only at its start, so nothing else helps.
//
// Members restart one at a time. While the present quorum would survive, that is all.
// Where members of the two authorities refuse each other, the quorum has to move from the
// old group to the new one. That is begun only while every voter can take part: clients
// then miss one restart, or two in a cluster of even size, and nothing that is
// acknowledged is lost.
func distrusted(want desired, seen World, now time.Time) lifecycle.Decision {
	s := sides(want, seen)
	if len(s.old) == 0 || seen.Certificates != "" || !s.kept {
		return lifecycle.Decision{}
	}
	if Volatile(want.EtcdCluster) {
		return unableToRestart(seen, s)
	}
	if m, ok := s.underway(want); ok {
		if d := hindered(want, seen, m, now); d.IsSet() {
			return d
		}
		return await(Serving, m, later(m.Since, m.Pod.Since), authoritySwapped, "%s starts with the present authority.", m.Name)
	}
	m := s.next(want, seen)
	step := restart(want, m, want.after(m), authoritySwapped,
		"%s runs with an authority that has been swapped or lost; it is restarted with the present one.", m.Name)
	switch {
	case !s.alive(m) || len(s.voters) <= 2 || s.others(m) >= s.quorum() && (s.complete() || !s.apart()):
		return lifecycle.Proceed(repair(step))
	case s.apart() && (s.complete() || len(s.renewed)+1 >= s.quorum()):
		return lifecycle.Proceed(repair(with(step, ArgBudget, OverBudget)))
	}
	return lifecycle.Block(authoritySwapped, fmt.Sprintf(
		"%s runs with an authority that has been swapped or lost, and its restart would take the quorum: %d of %d voters serve besides it. "+
			"Bring the others back, or restore the former Secrets; or delete the pod of %s to go on with an interruption.",
		m.Name, s.others(m), len(s.voters), m.Name))
}

// parted are the voters by the authority that they run with.
type parted struct {
	voters, old, renewed []Member
	// kept says that enough voters have their data.
	kept   bool
	listed bool
	seen   World
}

// sides looks at the voters of etcd's list, or as last known.
func sides(want desired, seen World) parted {
	p := parted{listed: seen.Listed, kept: true, seen: seen}
	names, kept := votersWithData(want.EtcdCluster, seen)
	if !seen.Listed {
		p.kept = len(kept) >= len(names)/2+1
	}
	for _, m := range seen.Members {
		if seen.Listed && !voter(m) || !seen.Listed && !slices.Contains(names, m.Name) {
			continue
		}
		p.voters = append(p.voters, m)
		switch {
		case want.refuses(m):
			p.old = append(p.old, m)
		case (m.Health != Unknown || m.PeersAccepted) && !m.Refused && !m.PeersRefused:
			p.renewed = append(p.renewed, m)
		}
	}
	return p
}

// refuses says that the member runs with other authorities than it should, and that
// handshakes prove it.
func (g desired) refuses(m Member) bool {
	_, present, _ := strings.Cut(g.revision, ".")
	return m.Set.Exists && !dataLost(m) && !obstructed(m) && (m.Refused || m.PeersRefused) && OtherAuthorities(m, present)
}

// OtherAuthorities says that the member's pod was made for other authorities than those
// of the digest, or for ones that are not known.
func OtherAuthorities(m Member, trust string) bool {
	_, runs, _ := strings.Cut(m.Pod.Revision, ".")
	return ours(m) && m.Pod.Exists && !m.Pod.Leaving && trust != "" && trust != runs
}

func (p parted) quorum() int { return len(p.voters)/2 + 1 }

// alive says that the member serves, as far as can be known: where no member can be
// asked, the kubelet's probe is what is left.
func (p parted) alive(m Member) bool {
	if p.listed {
		return p.seen.serving(m)
	}
	return m.Pod.Ready && !m.Pod.Leaving && !dataLost(m)
}

// others are the voters that are alive without this one.
func (p parted) others(but Member) int {
	n := 0
	for _, m := range p.voters {
		if m.Name != but.Name && p.alive(m) {
			n++
		}
	}
	return n
}

// complete says that no voter is down.
func (p parted) complete() bool { return len(p.old)+len(p.renewed) == len(p.voters) }

// apart says that members of the two authorities refuse each other.
func (p parted) apart() bool {
	return slices.ContainsFunc(p.old, func(m Member) bool { return m.PeersRefused })
}

// underway is a voter that is being restarted, or was and does not serve yet. Where the
// two authorities refuse each other it cannot serve: etcd opens its client port only when
// it has found a quorum. Then its peer port is enough.
func (p parted) underway(want desired) (Member, bool) {
	_, present, _ := strings.Cut(want.revision, ".")
	for _, m := range p.voters {
		_, made, _ := strings.Cut(m.Set.Revision, ".")
		if !ours(m) || !m.Set.Exists || made != present || want.refuses(m) || dataLost(m) {
			continue
		}
		if m.Health == Unknown && !m.Pod.Ready && !m.PeersAccepted || !p.apart() && !p.alive(m) {
			return m, true
		}
	}
	return Member{}, false
}

// next is who restarts: a member that does not serve, else a follower, else the leader.
func (p parted) next(want desired, seen World) Member {
	leads := func(m Member) bool {
		return m.Leads || !seen.Listed && remembered(want.EtcdCluster, m.Name).Role == roleLeader
	}
	for _, is := range []func(Member) bool{
		func(m Member) bool { return !p.alive(m) },
		func(m Member) bool { return !leads(m) },
	} {
		if i := slices.IndexFunc(p.old, is); i >= 0 {
			return p.old[i]
		}
	}
	return p.old[0]
}

// unableToRestart says why members whose data is in their pods are left alone.
func unableToRestart(seen World, p parted) lifecycle.Decision {
	if seen.Listed {
		return lifecycle.Decision{} // the others can replace it
	}
	return lifecycle.Block(authoritySwapped, fmt.Sprintf(
		"%s runs with an authority that has been swapped or lost, and a restart would lose its data, which is in its pod. "+
			"Restore the former Secrets, or move the data to another EtcdCluster.", p.old[0].Name))
}
