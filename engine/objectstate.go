package engine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/lifecycle/stuck"
)

// objectState is what the engine keeps in memory about each object of an application. All
// of it can be lost: a restarted operator reads the world again.
type objectState[W any] struct {
	uids       memory.Map[types.UID] // of the objects that the rest is about
	applyCache memory.ApplyCache[W]
	causes     memory.Causes
	stuck      memory.Map[stuck.Steps] // that came to nothing
}

// release drops the state of an object that is being deleted and needs no more work.
func (s *objectState[W]) release(key types.NamespacedName) {
	s.applyCache.Forget(key)
	s.causes.Forget(key)
	s.stuck.Forget(key)
}

// forget drops the state of an object that is gone.
func (s *objectState[W]) forget(key types.NamespacedName) {
	s.release(key)
	s.uids.Forget(key)
}

// release gives back what a leaving object held.
func (e *engine[T, W]) release(key types.NamespacedName) {
	e.operator.budget.Release(e.holder(key))
	e.operator.policies.Drop(e.holder(key))
	e.publisher.Release(key)
	e.objectState.release(key)
}

// forget drops all state of an object that is gone.
func (e *engine[T, W]) forget(key types.NamespacedName) {
	e.forgetState(key)
	e.specManagers.Forget(key)
	_ = e.references.Set(key, nil) // without references there is nothing to watch
}

// forgetReplaced drops the state of an earlier object of the same name. If an object is deleted
// and created again during a reconcile, no reconcile finds the name free. The cache has noted
// the author of the new object already, so that name stays.
func (e *engine[T, W]) forgetReplaced(key types.NamespacedName, obj T) {
	before, known := e.uids.Get(key)
	if known && before == obj.GetUID() {
		return
	}
	if known {
		e.forgetState(key)
	}
	e.uids.Put(key, obj.GetUID())
}

func (e *engine[T, W]) forgetState(key types.NamespacedName) {
	e.release(key)
	e.tracker.Forget(key)
	e.applier.Forget(key)
	e.filler.Forget(key)
	e.publisher.Forget(key)
	e.specs.Forget(key)
	e.rollback.Forget(key)
	e.objectState.forget(key)
	e.revisions.Forget(key)
}
