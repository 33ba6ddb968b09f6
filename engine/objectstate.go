package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/memory"
)

// objectState is what the engine keeps in memory about each object of an application. All
// of it can be lost: a restarted operator reads the world again.
type objectState[W any] struct {
	uids            memory.Map[types.UID] // of the objects that the rest is about
	lastStatusWrite memory.Map[time.Time] // when the engine last wrote each status
	pendingStatus   memory.Map[pendingStatus]
	applyCache      memory.ApplyCache[W]
	waits           memory.Waits
	causes          memory.Causes
	rollbackTargets memory.RollbackTargets
	settled         memory.Map[settledSpec]
}

// release drops the state of an object that is being deleted and needs no more work.
func (s *objectState[W]) release(key types.NamespacedName) {
	s.lastStatusWrite.Forget(key)
	s.pendingStatus.Forget(key)
	s.applyCache.Forget(key)
	s.waits.Forget(key)
	s.causes.Forget(key)
}

// forget drops the state of an object that is gone.
func (s *objectState[W]) forget(key types.NamespacedName) {
	s.release(key)
	s.rollbackTargets.Forget(key)
	s.settled.Forget(key)
	s.uids.Forget(key)
}
