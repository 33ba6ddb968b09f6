package enforce

import (
	"maps"
	"slices"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// WaitForWave remembers whether the object waits for a wave before its own.
func (r *Store) WaitForWave(holder string, refusals []lifecycle.Refusal, wake func()) {
	waits := slices.ContainsFunc(refusals, func(r lifecycle.Refusal) bool { return r.Gate == policy.GateCanary })
	r.mu.Lock()
	defer r.mu.Unlock()
	if !waits {
		delete(r.waves, holder)
		return
	}
	if r.waves == nil {
		r.waves = map[string]func(){}
	}
	r.waves[holder] = wake
}

// Broke wakes all objects that wait for a wave.
func (r *Store) Broke() {
	r.mu.Lock()
	wakes := slices.Collect(maps.Values(r.waves))
	r.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}
