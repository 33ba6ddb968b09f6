package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is a kind of fault.
type Fault string

// The faults that the simulator injects.
const (
	// Crash ends the operator's process just before an effect.
	Crash Fault = "crash"
	// LostAnswer is an effect that happened although its call failed.
	LostAnswer Fault = "lost answer"
	// Conflict is a write that is refused because the object has changed.
	Conflict Fault = "conflict"
	// APIError is a single call that fails.
	APIError Fault = "API error"
	// Outage is a time without the API server.
	Outage Fault = "API outage"
	// StaleCache is a world that is some ticks old.
	StaleCache Fault = "stale cache"
	// LostWatch is a time without events.
	LostWatch Fault = "lost watch"
	// Slow is a time in which the application makes no progress.
	Slow Fault = "slow application"
	// Broken is a fault of the model.
	Broken Fault = "broken"
	// Edited is a change of the spec by the user.
	Edited Fault = "edited"
	// Clock is another clock of the operator: it jumps, or a replica with another one leads. It
	// stays wrong when the faults stop.
	Clock Fault = "clock"
	// Refused is a time in which the API server refuses one step, as an admission policy or a quota
	// does.
	Refused Fault = "refused step"
)

// odds is the number of opportunities per fault, on average.
var odds = map[Fault]int{
	Crash: 25, LostAnswer: 30, Conflict: 30, APIError: 30,
	Outage: 80, StaleCache: 6, LostWatch: 60, Slow: 40, Broken: 25, Edited: 30, Clock: 60, Refused: 60,
}

// faultInjector decides by the seed which faults happen. Each run enables only some
// kinds of faults, so that rare combinations also meet long stretches without others.
type faultInjector struct {
	rng     *rand.Rand
	enabled map[Fault]bool
	stopped bool
	until   map[Fault]int
	tick    int
}

func newFaultInjector(rng *rand.Rand, disabled []Fault) *faultInjector {
	w := &faultInjector{rng: rng, enabled: map[Fault]bool{}, until: map[Fault]int{}}
	for _, f := range faults {
		w.enabled[f] = rng.IntN(3) > 0 && !slices.Contains(disabled, f)
	}
	return w
}

// happens reports whether the fault happens at this opportunity.
func (i *faultInjector) happens(f Fault) bool {
	return !i.stopped && i.enabled[f] && i.rng.IntN(odds[f]) == 0
}

// skews are how far the operator's clock may be off.
var skews = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// skew returns how far the operator's clock is ahead of all others from now on.
func (i *faultInjector) skew() time.Duration {
	most := skews[i.rng.IntN(len(skews))]
	return time.Duration(i.rng.Int64N(2*int64(most/time.Second)+1))*time.Second - most
}

// lasts reports whether a fault with a duration is in progress, and may begin one.
func (i *faultInjector) lasts(f Fault) bool {
	if i.stopped {
		return false
	}
	if i.until[f] <= i.tick && i.happens(f) {
		i.until[f] = i.tick + 1 + i.rng.IntN(30)
	}
	return i.until[f] > i.tick
}

// refusal returns the API server's error for one call, or nil.
func (i *faultInjector) refusal() error {
	switch {
	case i.until[Outage] > i.tick && !i.stopped, i.happens(APIError):
		return ErrAPI
	case i.happens(Conflict):
		return ErrConflict
	}
	return nil
}
