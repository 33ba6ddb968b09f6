package engine

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// waitForWave remembers whether the object waits for a wave before its own.
func (r *policyStore) waitForWave(holder string, refusals []lifecycle.Refusal, wake func()) {
	waits := slices.ContainsFunc(refusals, func(r lifecycle.Refusal) bool { return r.Gate == policy.Canary })
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

// broke wakes all objects that wait for a wave.
func (r *policyStore) broke() {
	r.mu.Lock()
	wakes := slices.Collect(maps.Values(r.waves))
	r.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// watchWaves lets those that wait look again when an object of the application is well
// again, or not any more.
func (e *engine[T, W]) watchWaves() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, _ queue) { e.operator.policies.broke() },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, _ queue) { e.operator.policies.broke() },
		UpdateFunc: func(_ context.Context, u event.UpdateEvent, _ queue) {
			was, ok := u.ObjectOld.(T)
			is, same := u.ObjectNew.(T)
			if ok && same && !e.peer(was).Equal(e.peer(is)) {
				e.operator.policies.broke()
			}
		},
	}
}
