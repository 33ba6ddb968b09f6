package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/governor-dev/governor/lifecycle"
)

// budget is the fleet's pacing: how many objects may be under a disruptive step at
// once. It is kept in memory, so a crash frees every slot; what was begun shows in
// the world and is finished without asking for one.
type budget struct {
	limit int

	mu      sync.Mutex
	holders map[string]bool
	waiting map[string]func()
}

// fleetBudget is the name of the gate that the budget is.
const fleetBudget = "FleetBudget"

// asksBudget reports whether the step takes a slot. A repair does not.
func asksBudget(s lifecycle.Step) bool { return s.Class.Disturbs() && s.Intent != lifecycle.Repair }

func newBudget(limit int) *budget {
	return &budget{limit: limit, holders: map[string]bool{}, waiting: map[string]func(){}}
}

// ask takes a slot for the holder, or returns the refusal; then wake is called
// once a slot is free.
func (b *budget) ask(holder string, wake func()) []lifecycle.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holders[holder] || len(b.holders) < b.limit {
		b.holders[holder] = true
		delete(b.waiting, holder)
		slots.Set(float64(len(b.holders)))
		return nil
	}
	b.waiting[holder] = wake
	return []lifecycle.Refusal{{Gate: fleetBudget, Message: fmt.Sprintf(
		"all %d slots for disruptive steps are taken, by %s", b.limit, b.names())}}
}

func (b *budget) names() string {
	return strings.Join(slices.Sorted(maps.Keys(b.holders)), ", ")
}

// crowd says, if no slot is free now, who has them.
func (b *budget) crowd() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.holders) < b.limit {
		return nil
	}
	return []string{fmt.Sprintf("Disruptive steps wait for a slot, however long that takes: all %d are taken, by %s.", b.limit, b.names())}
}

// releaseApp gives back what all objects of an application hold, when it stops.
func (b *budget) releaseApp(app string) {
	b.mu.Lock()
	held := slices.Collect(maps.Keys(b.holders))
	b.mu.Unlock()
	for _, holder := range held {
		if strings.HasPrefix(holder, app+" ") {
			b.release(holder)
		}
	}
}

// release gives the holder's slot back and wakes everyone who waits for one.
func (b *budget) release(holder string) {
	b.mu.Lock()
	delete(b.waiting, holder)
	var wakes []func()
	if b.holders[holder] {
		delete(b.holders, holder)
		wakes = slices.Collect(maps.Values(b.waiting))
		slots.Set(float64(len(b.holders)))
	}
	b.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}
