package budget

import (
	"cmp"
	"maps"
	"slices"

	"github.com/governor-dev/governor/lifecycle/policy"
)

// usage counts the slots in use: of the fleet, of each tenant and of each pool.
type usage struct {
	fleet          int
	tenants, pools map[string]int
}

func (b *Budget) usage() usage {
	u := usage{tenants: map[string]int{}, pools: map[string]int{}}
	for _, s := range b.holders {
		u.add(s.Claim)
	}
	return u
}

func (u *usage) add(c Claim) {
	u.fleet++
	for _, group := range c.tenants() {
		u.tenants[group]++
	}
	for _, s := range c.Shares {
		u.pools[s.Pool]++
	}
}

// fits reports whether every pool of the claim has a free slot.
func (u *usage) fits(c Claim) bool {
	return !slices.ContainsFunc(c.Shares, func(s policy.BudgetSlot) bool { return u.pools[s.Pool] >= s.Limit })
}

// first are the objects that the free slots go to, in their order. The namespace that
// holds the fewest slots comes first, then the one that has waited longest for its turn;
// within it the applications share alike; within those, the longest wait counts. A
// request that a policy's budget holds does not keep the others waiting.
func (b *Budget) first() []string {
	u, left := b.usage(), slices.Collect(maps.Values(b.waiting))
	turns, clock := maps.Clone(b.turns), b.clock
	var chosen []string
	for u.fleet < b.limit {
		left = slices.DeleteFunc(left, func(r *request) bool { return !u.fits(r.Claim) })
		if len(left) == 0 {
			break
		}
		next := slices.MinFunc(left, func(x, y *request) int { return compare(u, turns, x, y) })
		u.add(next.Claim)
		clock++
		for _, group := range next.tenants() {
			turns[group] = clock
		}
		chosen = append(chosen, next.Holder)
		left = slices.DeleteFunc(left, func(r *request) bool { return r == next })
	}
	return chosen
}

func compare(u usage, turns map[string]uint64, x, y *request) int {
	a, b := x.tenants(), y.tenants()
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if c := cmp.Or(cmp.Compare(u.tenants[a[i]], u.tenants[b[i]]), cmp.Compare(turns[a[i]], turns[b[i]])); c != 0 {
			return c
		}
	}
	return cmp.Compare(x.came, y.came)
}

// yields reports whether the holder gives its slot to another namespace before its next
// step: its own namespace has more than its share, and the other one less.
func (b *Budget) yields(s *slot) bool {
	if len(b.holders) < b.limit {
		return false
	}
	u := b.usage()
	for _, r := range b.waiting {
		if u.tenants[r.Namespace]+1 < u.tenants[s.Namespace] && u.fits(r.Claim) {
			return true
		}
	}
	return false
}

// forgetTurns drops the turns of groups that no request waits in.
func (b *Budget) forgetTurns() {
	waits := map[string]bool{}
	for _, r := range b.waiting {
		for _, group := range r.tenants() {
			waits[group] = true
		}
	}
	maps.DeleteFunc(b.turns, func(group string, _ uint64) bool { return !waits[group] })
}
