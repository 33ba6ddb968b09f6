package etcd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

const authoritySwapped = "AuthoritySwapped"

// authorityMismatch restarts members that run with a replaced or lost authority: the operator or
// the other members refuse their certificates, or they refuse those of the others. etcd reads
// its authorities only at start, so only a restart helps.
//
// Members restart one at a time. While the present quorum survives, no more is needed. Where
// members of the two authorities refuse each other, the quorum has to move from the old group to
// the new one. That begins only while every voter can take part. Clients then miss one restart,
// or two in a cluster of even size, and no acknowledged write is lost.
func authorityMismatch(want desired, seen World, now time.Time) lifecycle.Decision {
	s := groupByAuthority(want, seen)
	if len(s.old) == 0 || seen.Certificates != "" || !s.kept {
		return lifecycle.Decision{}
	}
	if Volatile(want.EtcdCluster) {
		return unableToRestart(seen, s)
	}
	if m, ok := s.inProgress(want); ok {
		if want.mismatches(m) && !m.Pod.Ready && !claimTerminating(m) && !obstructed(m) {
			return lifecycle.Proceed(correction(want, seen, m, "%s started with the current authority and an earlier spec, and does not serve; it starts with the current spec.", m.Name))
		}
		if d := hindered(want, seen, m, now); d.IsSet() {
			return d
		}
		return await(Serving, m, later(m.Since, m.Pod.Since), authoritySwapped, "%s is starting with the current authority.", m.Name)
	}
	if d, ok := s.claimsTerminating(); ok {
		return d
	}
	m := s.next(want, seen)
	step := restart(want, m, want.after(m), authoritySwapped,
		"%s runs with an authority that was replaced or lost; it restarts with the current one.", m.Name)
	if d := refusedTemplate(want, seen, step); d.IsSet() && s.alive(m) {
		return d
	}
	switch {
	case !s.alive(m) || len(s.voters) <= 2 || s.others(m) >= s.quorum() && (s.complete() || !s.refuseEachOther()):
		return lifecycle.Proceed(repair(step))
	case s.refuseEachOther() && (s.complete() || len(s.renewed)+1 >= s.quorum()):
		return lifecycle.Proceed(repair(overBudget(step)))
	case canRemoveDead(want, seen, now):
		return lifecycle.Decision{} // the restart keeps the quorum afterwards
	}
	return lifecycle.Block(authoritySwapped, fmt.Sprintf(
		"%s runs with an authority that was replaced or lost, and its restart would break the quorum: %d of the other voters serve, of %d in all. "+
			"Restore the other members or the former Secrets, or delete the pod of %s to accept an interruption.",
		m.Name, s.others(m), len(s.voters), m.Name))
}

// canRemoveDead reports whether a member that will not return can be removed now.
func canRemoveDead(want desired, seen World, now time.Time) bool {
	d := deadMember(want, seen, now)
	return seen.Listed && d.IsSet() && seen.change(d.Step.Target, func(m *Member) { m.Role = Outside }).missing() == 0
}

// claimsTerminating decides where restarts cannot help, because a restart would lose the data of a
// member whose claim is being deleted. Where etcd's list is known, later rules replace the member:
// a new member accepts those that have restarted.
func (p authorityGroups) claimsTerminating() (d lifecycle.Decision, ok bool) {
	able := len(p.restartable())
	switch {
	case able > 0 && (!p.refuseEachOther() || p.listed || len(p.renewed)+able >= p.quorum()):
		return lifecycle.Decision{}, false
	case p.listed:
		return lifecycle.Decision{}, true
	}
	at := slices.IndexFunc(p.old, claimTerminating)
	if at < 0 {
		return lifecycle.Decision{}, false
	}
	return lifecycle.Block(authoritySwapped, fmt.Sprintf(
		"%s runs with an authority that was replaced or lost, and its %s: a restart would lose its data, and too few other "+
			"members can restart. Do not delete its pod. Restore the former Secrets of the authority; Governor then replaces the member.",
		p.old[at].Name, doom(p.old[at]))), true
}

// restartable are the members with an old authority that keep their data when their pod is deleted.
func (p authorityGroups) restartable() []Member {
	return slices.DeleteFunc(slices.Clone(p.old), claimTerminating)
}

// authorityGroups groups the voters by the authority that they run with.
type authorityGroups struct {
	voters, old, renewed []Member
	// kept reports whether enough voters have their data.
	kept   bool
	listed bool
	seen   World
}

// groupByAuthority groups the voters of etcd's list, or the last known voters.
func groupByAuthority(want desired, seen World) authorityGroups {
	p := authorityGroups{listed: seen.Listed, kept: true, seen: seen}
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

// refuses reports whether handshakes prove that the member runs with other authorities than it
// should.
func (g desired) refuses(m Member) bool {
	_, present, _ := strings.Cut(g.revision, ".")
	return m.Set.Exists && !dataLost(m) && !obstructed(m) && (m.Refused || m.PeersRefused) && OtherAuthorities(m, present)
}

// onlyReplaceable reports whether the member works for the other members, but never for Governor
// again: it refuses clients' certificates, and a restart would lose its data.
func (g desired) onlyReplaceable(m Member) bool {
	return g.refuses(m) && !m.PeersRefused && claimTerminating(m)
}

// OtherAuthorities reports whether the member's pod was created for authorities other than those
// of the digest, or for unknown ones.
func OtherAuthorities(m Member, trust string) bool {
	_, runs, _ := strings.Cut(m.Pod.Revision, ".")
	return ours(m) && m.Pod.Exists && !m.Pod.Leaving && trust != "" && trust != runs
}

func (p authorityGroups) quorum() int { return len(p.voters)/2 + 1 }

// alive reports whether the member serves, as far as is known. The kubelet's readiness probe is the
// only evidence where no member answers, and of a member that refuses only Governor.
func (p authorityGroups) alive(m Member) bool {
	if p.listed && (!m.Refused || m.PeersRefused) {
		return p.seen.serving(m)
	}
	return m.Pod.Ready && !m.Pod.Leaving && !dataLost(m)
}

// others counts the other voters that are alive.
func (p authorityGroups) others(but Member) int {
	n := 0
	for _, m := range p.voters {
		if m.Name != but.Name && p.alive(m) {
			n++
		}
	}
	return n
}

// complete reports that no voter is down.
func (p authorityGroups) complete() bool { return len(p.old)+len(p.renewed) == len(p.voters) }

// refuseEachOther reports whether members of the two authorities refuse each other.
func (p authorityGroups) refuseEachOther() bool {
	return slices.ContainsFunc(p.old, func(m Member) bool { return m.PeersRefused })
}

// inProgress returns a voter that is restarting, or that has restarted and does not serve yet.
// Where the two authorities refuse each other it cannot serve, because etcd opens its client
// port only once it finds a quorum. A working peer port is then sufficient.
func (p authorityGroups) inProgress(want desired) (Member, bool) {
	_, present, _ := strings.Cut(want.revision, ".")
	for _, m := range p.voters {
		_, made, _ := strings.Cut(m.Set.Revision, ".")
		if !ours(m) || !m.Set.Exists || made != present || want.refuses(m) || dataLost(m) {
			continue
		}
		if m.Health == Unknown && !m.Pod.Ready && !m.PeersAccepted || !p.refuseEachOther() && !p.alive(m) {
			return m, true
		}
	}
	return Member{}, false
}

// next returns the member to restart: one that does not serve, otherwise a follower, otherwise
// the leader.
func (p authorityGroups) next(want desired, seen World) Member {
	leads := func(m Member) bool {
		return m.Leads || !seen.Listed && Remembered(want.EtcdCluster, m.Name).Role == roleLeader
	}
	able := p.restartable()
	for _, is := range []func(Member) bool{
		func(m Member) bool { return !p.alive(m) },
		func(m Member) bool { return !leads(m) },
	} {
		if i := slices.IndexFunc(able, is); i >= 0 {
			return able[i]
		}
	}
	return able[0]
}

// unableToRestart reports why members with their data in their pods are not restarted.
func unableToRestart(seen World, p authorityGroups) lifecycle.Decision {
	if seen.Listed {
		return lifecycle.Decision{} // the others can replace it
	}
	return lifecycle.Block(authoritySwapped, fmt.Sprintf(
		"%s runs with an authority that was replaced or lost, and a restart would lose its data, which is stored in its pod. "+
			"Restore the former Secrets, or move the data to another EtcdCluster.", p.old[0].Name))
}
