package etcd

import (
	"math/bits"
	"slices"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Place is a node on which a new member could run.
type Place struct{ Node, Zone string }

// misplaced is the reason of the steps that move a member to a better node.
const misplaced = "MemberMisplaced"

// maxTried is the number of recorded spreads that a new member did not improve. The schema of
// status.bootstrap.triedSpreads permits as many.
const maxTried = 16

// NeedsPlaces reports whether the driver must look up where a new member could run: so many
// voters share a zone or node that its loss breaks the quorum, and the spec permits moves.
func NeedsPlaces(want *etcdv1.EtcdCluster, seen World) bool {
	return want.Spec.Rebalance == etcdv1.RebalanceAutomatic && !isDeleted(want) && settledCore(want, seen).concentration() != ""
}

// settledCore is the world without the newest member, where there is one more than wanted.
func settledCore(want *etcdv1.EtcdCluster, seen World) World {
	if seen.count(ourListed) <= int(want.Spec.Size) {
		return seen
	}
	newest, _ := seen.last(ourListed)
	return seen.change(newest.Name, func(m *Member) { m.Role, m.Set, m.Volume = Outside, Set{}, Volume{} })
}

// rebalances reports whether one additional member may exist to improve the spread. A new member
// that finds no node is given up.
func rebalances(want *etcdv1.EtcdCluster, seen World) bool {
	if !improvable(want, seen) {
		return false
	}
	if seen.count(ourListed) > int(want.Spec.Size) {
		newest, _ := seen.last(ourListed)
		return voter(newest) || newest.Pod.Trouble == lifecycle.PodProblemNone && newest.Volume.Problem == ""
	}
	return !slices.Contains(bootstrapState(want).TriedSpreads, spreadDigest(seen))
}

// improvable reports whether the wanted members could be spread better.
func improvable(want *etcdv1.EtcdCluster, seen World) bool {
	if !NeedsPlaces(want, seen) {
		return false
	}
	core := settledCore(want, seen)
	return core.count(ourListed) == int(want.Spec.Size) && core.canSpread()
}

// canSpread reports whether moving one member to one of the places improves the spread.
func (w World) canSpread() bool {
	_, ok := w.bestPlace()
	return ok
}

// bestPlace is the place where a replacement of a present member improves the spread most.
func (w World) bestPlace() (best Place, ok bool) {
	least := w.crowding("", Place{})
	for _, p := range w.Places {
		if c := w.crowdingWith(p); c >= 0 && c < least {
			best, least, ok = p, c, true
		}
	}
	return best, ok
}

// zoneWeight makes any difference between zones outweigh all differences between nodes.
const zoneWeight = 1000

// crowding measures how unevenly voters are spread: the sum of the squares of the voters per
// zone and per node. It omits the member without, and adds one at the place.
func (w World) crowding(without string, at Place) int {
	zones, nodes := map[string]int{}, map[string]int{}
	if at != (Place{}) {
		zones[at.Zone]++
		nodes[at.Node]++
	}
	for _, m := range w.Members {
		if voter(m) && m.Name != without {
			zones[m.Pod.Zone]++
			nodes[m.Pod.Node]++
		}
	}
	sum := 0
	for _, n := range zones {
		sum += zoneWeight * n * n
	}
	for _, n := range nodes {
		sum += n * n
	}
	return sum
}

// spreadDigest changes when the members move, when a better spread becomes possible, and when the
// number of places that permit it doubles. Each try copies all data to a new member, so no change of
// other nodes may cause one.
func spreadDigest(core World) string {
	var all []Place
	for _, m := range core.Members {
		if voter(m) {
			all = append(all, Place{m.Name + " " + m.Pod.Node, m.Pod.Zone})
		}
	}
	least, places := core.bestSpread()
	return lifecycle.Digest([]any{all, least, bits.Len(uint(places))})
}

// bestSpread is the least crowding that the move of one member to one of the places can reach, and
// the number of places that reach it.
func (w World) bestSpread() (least, places int) {
	for _, p := range w.Places {
		c := w.crowdingWith(p)
		switch {
		case places == 0 || c < least:
			least, places = c, 1
		case c == least:
			places++
		}
	}
	return least, places
}

// crowdingWith is the least crowding after a member has moved to the place.
func (w World) crowdingWith(p Place) int {
	least := -1
	for _, m := range w.Members {
		if !voter(m) || m.Unmanaged {
			continue
		}
		if c := w.crowding(m.Name, p); least < 0 || c < least {
			least = c
		}
	}
	return least
}

// triedSpreads records the spread that a new member is about to improve. If it does not, the
// former members stay, and no other member is added for the same spread.
func triedSpreads(want *etcdv1.EtcdCluster, seen World) []string {
	tried := bootstrapState(want).TriedSpreads
	if seen.count(ourListed) <= int(want.Spec.Size) || !improvable(want, seen) {
		return tried
	}
	digest := spreadDigest(settledCore(want, seen))
	if slices.Contains(tried, digest) {
		return tried
	}
	tried = append(slices.Clone(tried), digest)
	return tried[max(0, len(tried)-maxTried):]
}

// misplacedMember moves one member: another joins, and once it serves, the member in the most
// crowded place is removed. It is the last change, and begins only while all members serve.
func misplacedMember(want desired, seen World) lifecycle.Decision {
	if !want.rebalances {
		return lifecycle.Decision{}
	}
	core, has := settledCore(want.EtcdCluster, seen), seen.count(ourListed)
	if has <= int(want.Spec.Size) {
		m := Member{Name: memberName(want.EtcdCluster, nextNumber(want.EtcdCluster, seen))}
		place, _ := core.bestPlace()
		s := step(AddLearner, m, misplaced, "The loss of %s would break the quorum, and the node %s has room; %s joins there, and Governor then removes an old member.",
			core.concentration(), place.Node, m.Name)
		return lifecycle.Proceed(class(s, lifecycle.ClassDisruptive).WithArgs(addArgs{PeerURL(want.EtcdCluster, m.Name)}))
	}
	m := seen.mostCrowded()
	if successor, able := newLeader(seen, m); m.Leads && able {
		return lifecycle.Proceed(moveLeader(m, successor, misplaced, "%s leads and is removed, because its place is the most crowded; the leadership moves to %s.", m.Name, successor.Name))
	}
	return lifecycle.Proceed(remove(m, misplaced, "There is one member more than wanted; Governor removes %s, whose place is the most crowded.", m.Name))
}

// mostCrowded is the member whose removal leaves the best spread; of several, the newest.
func (w World) mostCrowded() (found Member) {
	least := -1
	for _, m := range w.Members {
		if !ours(m) || !voter(m) {
			continue
		}
		if c := w.crowding(m.Name, Place{}); least < 0 || c <= least {
			found, least = m, c
		}
	}
	return found
}
