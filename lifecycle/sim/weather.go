package sim

import (
	"math/rand/v2"
	"slices"
)

// Fault is a kind of bad weather.
type Fault string

// The faults that the simulator makes by itself.
const (
	// Crash is the operator's death just before an effect.
	Crash Fault = "crash"
	// LostAnswer is an effect that happened though its call failed.
	LostAnswer Fault = "lost answer"
	// Conflict is a write refused because the object had changed.
	Conflict Fault = "conflict"
	// APIError is a single call that failed.
	APIError Fault = "API error"
	// Outage is the API server away for a while.
	Outage Fault = "API outage"
	// StaleCache is a world that is some ticks old.
	StaleCache Fault = "stale cache"
	// LostWatch is a time without any wake-up.
	LostWatch Fault = "lost watch"
	// Slow is an application that makes no progress for a while.
	Slow Fault = "slow application"
	// Broken is something that the model broke.
	Broken Fault = "broken"
	// Edited is a change of mind of the user.
	Edited Fault = "edited"
)

// odds is how often, in one of so many opportunities, each fault happens.
var odds = map[Fault]int{
	Crash: 25, LostAnswer: 30, Conflict: 30, APIError: 30,
	Outage: 80, StaleCache: 6, LostWatch: 60, Slow: 40, Broken: 25, Edited: 30,
}

// faultInjector decides by the seed which faults happen. Each life has a climate: only
// some faults, so that rare combinations also meet long calm stretches.
type faultInjector struct {
	rng     *rand.Rand
	enabled map[Fault]bool
	stopped bool
	until   map[Fault]int
	tick    int
}

func newFaultInjector(chance *rand.Rand, spared []Fault) *faultInjector {
	w := &faultInjector{rng: chance, enabled: map[Fault]bool{}, until: map[Fault]int{}}
	for _, f := range faults {
		w.enabled[f] = chance.IntN(3) > 0 && !slices.Contains(spared, f)
	}
	return w
}

// happens reports whether the fault strikes at this opportunity.
func (w *faultInjector) happens(f Fault) bool {
	return !w.stopped && w.enabled[f] && w.rng.IntN(odds[f]) == 0
}

// lasts reports whether a fault with a duration is under way, and may begin one.
func (w *faultInjector) lasts(f Fault) bool {
	if w.stopped {
		return false
	}
	if w.until[f] <= w.tick && w.happens(f) {
		w.until[f] = w.tick + 1 + w.rng.IntN(30)
	}
	return w.until[f] > w.tick
}

// refusal is the API server's error for one call, or nil.
func (w *faultInjector) refusal() error {
	switch {
	case w.until[Outage] > w.tick && !w.stopped, w.happens(APIError):
		return ErrAPI
	case w.happens(Conflict):
		return ErrConflict
	}
	return nil
}
