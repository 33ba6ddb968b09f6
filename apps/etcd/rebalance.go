package etcd

import (
	"slices"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Place is a node on which a new member could run.
type Place struct{ Node, Zone string }

// misplaced is the reason of the steps that move a member to a better place.
const misplaced = "MemberMisplaced"

// mostTried is how many spreads are remembered that a new member did not better.
const mostTried = 8

// NeedsPlaces says that the places where a new member could run are of interest: one zone or
// node has so many voters that its loss takes the quorum, and members are to be moved.
func NeedsPlaces(want *etcdv1.EtcdCluster, seen World) bool {
	return want.Spec.Rebalance == etcdv1.RebalanceAutomatic && !leaving(want) && settledCore(want, seen).concentration() != ""
}

// settledCore is the world without the newest member, where there is one more than wanted.
func settledCore(want *etcdv1.EtcdCluster, seen World) World {
	if seen.count(ourListed) <= int(want.Spec.Size) {
		return seen
	}
	newest, _ := seen.last(ourListed)
	return seen.change(newest.Name, func(m *Member) { m.Role, m.Set, m.Volume = Outside, Set{}, Volume{} })
}

// rebalances says that one member more than wanted may be there, to improve the spread. A new
// member that finds no place is given up.
func rebalances(want *etcdv1.EtcdCluster, seen World) bool {
	if !improvable(want, seen) {
		return false
	}
	if seen.count(ourListed) > int(want.Spec.Size) {
		newest, _ := seen.last(ourListed)
		return voter(newest) || newest.Pod.Trouble == lifecycle.PodProblemNone && newest.Volume.Problem == ""
	}
	return !slices.Contains(memory(want).TriedSpreads, spreadDigest(seen))
}

// improvable says that the wanted members could be spread better.
func improvable(want *etcdv1.EtcdCluster, seen World) bool {
	if !NeedsPlaces(want, seen) {
		return false
	}
	core := settledCore(want, seen)
	return core.count(ourListed) == int(want.Spec.Size) && core.canSpread()
}

// canSpread says that the spread gets better if one member moves to one of the places.
func (w World) canSpread() bool {
	_, ok := w.bestPlace()
	return ok
}

// bestPlace is where a new member improves the spread most, in the place of a present one.
func (w World) bestPlace() (best Place, ok bool) {
	least := w.crowding("", Place{})
	for _, p := range w.Places {
		for _, m := range w.Members {
			if !voter(m) || m.Unmanaged {
				continue
			}
			if c := w.crowding(m.Name, p); c < least {
				best, least, ok = p, c, true
			}
		}
	}
	return best, ok
}

// zoneWeight makes any difference between zones count more than all between nodes.
const zoneWeight = 1000

// crowding is how unevenly voters are spread: the sum of the squares of how many share a zone,
// and of how many share a node. The member without is left out, and one is added at the place.
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

// spreadDigest is the same as long as members and places are.
func spreadDigest(core World) string {
	var all []Place
	for _, m := range core.Members {
		if voter(m) {
			all = append(all, Place{m.Name + " " + m.Pod.Node, m.Pod.Zone})
		}
	}
	return lifecycle.Digest([]any{all, core.Places})
}

// triedSpreads remembers the spread that a new member is about to better. If it does not, the
// former members are left, and no other is added for the same spread.
func triedSpreads(want *etcdv1.EtcdCluster, seen World) []string {
	tried := memory(want).TriedSpreads
	if seen.count(ourListed) <= int(want.Spec.Size) || !improvable(want, seen) {
		return tried
	}
	digest := spreadDigest(settledCore(want, seen))
	if slices.Contains(tried, digest) {
		return tried
	}
	tried = append(slices.Clone(tried), digest)
	return tried[max(0, len(tried)-mostTried):]
}

// misplacedMember moves one member: another joins, and when it serves, the one goes whose
// place is the most crowded. It is the last wish, and begins only while all members serve.
func misplacedMember(want desired, seen World) lifecycle.Decision {
	if !want.rebalances {
		return lifecycle.Decision{}
	}
	core, has := settledCore(want.EtcdCluster, seen), seen.count(ourListed)
	if has <= int(want.Spec.Size) {
		m := Member{Name: memberName(want.EtcdCluster, nextNumber(want.EtcdCluster, seen))}
		place, _ := core.bestPlace()
		s := step(AddLearner, m, misplaced, "The loss of %s would take the quorum, and the node %s has room; %s joins, and an old member goes then.",
			core.concentration(), place.Node, m.Name)
		return lifecycle.Proceed(with(class(s, lifecycle.ClassDisruptive), ArgPeerURL, PeerURL(want.EtcdCluster, m.Name)))
	}
	m := seen.mostCrowded()
	if heir, able := newLeader(seen, m); m.Leads && able {
		return lifecycle.Proceed(moveLeader(m, heir, misplaced, "%s leads and goes, because its place is the most crowded; %s takes over.", m.Name, heir.Name))
	}
	return lifecycle.Proceed(remove(m, misplaced, "There is one member more than wanted, and the place of %s is the most crowded.", m.Name))
}

// mostCrowded is the member without which the others are spread best; of several the newest.
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
