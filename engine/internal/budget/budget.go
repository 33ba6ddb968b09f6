// Package budget limits how many objects take disruptive steps at the same time. It shares
// the slots fairly among namespaces and applications.
package budget

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

var slots = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "governor_budget_slots_taken", Help: "Slots of the fleet's disruption budget in use.",
})

func init() { metrics.Registry.MustRegister(slots) }

// Budget is pacing: how many objects may be under a disruptive step at once. The whole
// fleet shares a pool of slots, and policies may have more pools. It is kept in memory,
// so a crash frees every slot; what was begun shows in the world and is finished
// without asking for one.
//
// A slot is held only while its step moves: an object that is Blocked or held by a policy
// holds none. Free slots go to namespaces in turn; see [budget.first].
type Budget struct {
	limit int
	now   func() time.Time

	mu      sync.Mutex
	holders map[string]*slot
	waiting map[string]*request
	// turns says when each group of waiting requests last got a slot or began to wait.
	turns map[string]uint64
	clock uint64
}

// slot is what one object holds: one slot of the fleet and one of each pool.
type slot struct {
	Claim
	moved time.Time // when its last step was taken
}

// request is an object that waits for a slot.
type request struct {
	Claim
	came uint64
	wake func()
}

// Claim is one object that needs a slot.
type Claim struct {
	Holder         string
	Namespace, App string
	// Generation is the object's. A slot is for the steps of one: an object whose spec changes
	// again and again before it settles waits for the others in between.
	Generation int64
	Shares     []policy.BudgetSlot
}

// tenants are the groups that share the fleet's slots fairly: namespaces, and within a
// namespace the applications.
func (c Claim) tenants() [2]string { return [2]string{c.Namespace, c.Namespace + " " + c.App} }

// longestHold is how long an object keeps its slot after its last step. A wait that takes
// longer may have no end, and other objects do not wait for it.
const longestHold = 10 * time.Minute

// FleetBudget is the name of the gate that the budget is.
const FleetBudget = "FleetBudget"

// New returns a budget with limit slots for the fleet.
func New(limit int, now func() time.Time) *Budget {
	return &Budget{limit: limit, now: now, holders: map[string]*slot{}, waiting: map[string]*request{}, turns: map[string]uint64{}}
}

// Ask takes a slot of the fleet's and of each policy's for the object, all or none, or
// returns the refusals; then wake is called once the object's turn for a slot comes.
func (b *Budget) Ask(c Claim, wake func()) (refusals []lifecycle.Refusal) {
	b.settle(func() bool {
		refusals = b.decide(c, wake)
		return len(refusals) > 0
	})
	return refusals
}

func (b *Budget) decide(c Claim, wake func()) []lifecycle.Refusal {
	b.expire()
	if held := b.holders[c.Holder]; held != nil && held.Generation == c.Generation && !b.yields(held) {
		held.Shares = c.Shares
		return nil
	}
	b.free(c.Holder)
	b.await(c, wake)
	chosen := b.first()
	if !slices.Contains(chosen, c.Holder) {
		return b.refusals(c, chosen)
	}
	b.grant(c)
	return nil
}

// await remembers the request, or that it is still there.
func (b *Budget) await(c Claim, wake func()) {
	came := b.clock + 1
	if known := b.waiting[c.Holder]; known != nil {
		came = known.came
	} else {
		b.clock++
	}
	b.waiting[c.Holder] = &request{Claim: c, came: came, wake: wake}
	for _, group := range c.tenants() {
		if _, waits := b.turns[group]; !waits {
			b.turns[group] = came
		}
	}
}

func (b *Budget) grant(c Claim) {
	delete(b.waiting, c.Holder)
	b.holders[c.Holder] = &slot{Claim: c, moved: b.now()}
	b.clock++
	for _, group := range c.tenants() {
		b.turns[group] = b.clock
	}
	b.forgetTurns()
	b.count()
}

// refusals name the pools that have no slot, or the object whose turn comes first.
func (b *Budget) refusals(c Claim, chosen []string) []lifecycle.Refusal {
	var all []lifecycle.Refusal
	if len(b.holders) >= b.limit {
		all = append(all, lifecycle.Refusal{Gate: FleetBudget, Message: fmt.Sprintf(
			"all %d slots for disruptive steps are taken, by %s", b.limit, names(b.holders))})
	}
	for _, s := range c.Shares {
		if in := b.pool(s.Pool); len(in) >= s.Limit {
			all = append(all, s.Full(names(in)))
		}
	}
	if len(all) == 0 {
		all = append(all, lifecycle.Refusal{Gate: FleetBudget, Message: fmt.Sprintf(
			"the next free slot for a disruptive step goes to %s", strings.Join(chosen, ", "))})
	}
	return all
}

// pool are the holders of a policy's slots.
func (b *Budget) pool(name string) map[string]*slot {
	in := map[string]*slot{}
	for holder, s := range b.holders {
		if slices.ContainsFunc(s.Shares, func(s policy.BudgetSlot) bool { return s.Pool == name }) {
			in[holder] = s
		}
	}
	return in
}

func (b *Budget) count() { slots.Set(float64(len(b.holders))) }

func names(holders map[string]*slot) string {
	return strings.Join(slices.Sorted(maps.Keys(holders)), ", ")
}

// Crowd returns the holders of all slots if none is free.
func (b *Budget) Crowd() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.holders) < b.limit {
		return nil
	}
	return []string{fmt.Sprintf("Disruptive steps wait for a slot, however long that takes: all %d are taken, by %s.", b.limit, names(b.holders))}
}

// Moves notes that a step of the object was taken.
func (b *Budget) Moves(holder string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.holders[holder]; s != nil {
		s.moved = b.now()
	}
}

// expire takes the slots of objects that have not moved for long.
func (b *Budget) expire() {
	for holder, s := range b.holders {
		if b.now().Sub(s.moved) >= longestHold {
			b.free(holder)
		}
	}
}

// ReleaseApp gives back what all objects of an application hold, when it stops.
func (b *Budget) ReleaseApp(app string) {
	b.mu.Lock()
	var all []string
	for holder, s := range b.holders {
		if s.App == app {
			all = append(all, holder)
		}
	}
	for holder, r := range b.waiting {
		if r.App == app {
			all = append(all, holder)
		}
	}
	b.mu.Unlock()
	for _, holder := range all {
		b.Release(holder)
	}
}

// Withdraw ends the object's wait for a slot. The object keeps the slot that it holds.
func (b *Budget) Withdraw(holder string) {
	b.settle(func() bool { return b.leave(holder) })
}

// Release gives the object's slots back and ends its wait for one.
func (b *Budget) Release(holder string) {
	b.settle(func() bool {
		left, freed := b.leave(holder), b.free(holder)
		return left || freed
	})
}

// settle makes a change and, if it is one, wakes the objects whose turn has come by it.
func (b *Budget) settle(change func() bool) {
	b.mu.Lock()
	var wakes []func()
	if change() {
		b.forgetTurns()
		for _, holder := range b.first() {
			wakes = append(wakes, b.waiting[holder].wake)
		}
	}
	b.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

func (b *Budget) leave(holder string) bool {
	_, waits := b.waiting[holder]
	delete(b.waiting, holder)
	return waits
}

func (b *Budget) free(holder string) bool {
	_, held := b.holders[holder]
	delete(b.holders, holder)
	b.count()
	return held
}
