package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// budget is pacing: how many objects may be under a disruptive step at once. The whole
// fleet shares a pool of slots, and policies may have more pools. It is kept in memory,
// so a crash frees every slot; what was begun shows in the world and is finished
// without asking for one.
type budget struct {
	limit int

	mu      sync.Mutex
	pools   map[string]map[string]bool // holders by pool
	waiting map[string]func()
}

// everybody is the pool that all share; those of policies have names.
const everybody = ""

// fleetBudget is the name of the gate that the budget is.
const fleetBudget = "FleetBudget"

// asksBudget reports whether the step takes a slot. A repair does not.
func asksBudget(s lifecycle.Step) bool { return s.Class.Disturbs() && s.Intent != lifecycle.Repair }

func newBudget(limit int) *budget {
	return &budget{limit: limit, pools: map[string]map[string]bool{}, waiting: map[string]func(){}}
}

// ask takes a slot of the fleet's and of each policy's for the holder, all or none, or
// returns the refusals; then wake is called once a slot is free.
func (b *budget) ask(holder string, wake func(), shares ...policy.Share) []lifecycle.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	var refusals []lifecycle.Refusal
	if b.full(everybody, b.limit, holder) {
		refusals = append(refusals, lifecycle.Refusal{Gate: fleetBudget, Message: fmt.Sprintf(
			"all %d slots for disruptive steps are taken, by %s", b.limit, b.names(everybody))})
	}
	for _, s := range shares {
		if b.full(s.Pool, s.Limit, holder) {
			refusals = append(refusals, s.Full(b.names(s.Pool)))
		}
	}
	if len(refusals) > 0 {
		b.waiting[holder] = wake
		return refusals
	}
	b.take(holder, shares)
	return nil
}

func (b *budget) full(pool string, limit int, holder string) bool {
	return !b.pools[pool][holder] && len(b.pools[pool]) >= limit
}

func (b *budget) take(holder string, shares []policy.Share) {
	delete(b.waiting, holder)
	for _, s := range append([]policy.Share{{Pool: everybody}}, shares...) {
		if b.pools[s.Pool] == nil {
			b.pools[s.Pool] = map[string]bool{}
		}
		b.pools[s.Pool][holder] = true
	}
	b.count()
}

func (b *budget) count() { slots.Set(float64(len(b.pools[everybody]))) }

func (b *budget) names(pool string) string {
	return strings.Join(slices.Sorted(maps.Keys(b.pools[pool])), ", ")
}

// crowd says, if no slot is free now, who has them.
func (b *budget) crowd() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pools[everybody]) < b.limit {
		return nil
	}
	return []string{fmt.Sprintf("Disruptive steps wait for a slot, however long that takes: all %d are taken, by %s.", b.limit, b.names(everybody))}
}

// releaseApp gives back what all objects of an application hold, when it stops.
func (b *budget) releaseApp(app string) {
	b.mu.Lock()
	held := slices.Collect(maps.Keys(b.pools[everybody])) // who has any slot has one of these
	b.mu.Unlock()
	for _, holder := range held {
		if strings.HasPrefix(holder, app+" ") {
			b.release(holder)
		}
	}
}

// release gives the holder's slots back and wakes everyone who waits for one.
func (b *budget) release(holder string) {
	b.mu.Lock()
	delete(b.waiting, holder)
	var wakes []func()
	if b.pools[everybody][holder] {
		b.free(holder)
		wakes = slices.Collect(maps.Values(b.waiting))
	}
	b.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

func (b *budget) free(holder string) {
	for pool, holders := range b.pools {
		delete(holders, holder)
		if len(holders) == 0 {
			delete(b.pools, pool)
		}
	}
	b.count()
}
