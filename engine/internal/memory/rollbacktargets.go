package memory

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/kube/revision"
)

// RollbackTargets remembers, of each object that has failed, which revision it could return to;
// one of number 0 says that there is none.
type RollbackTargets struct{ Map[rollbackTarget] }

type rollbackTarget struct {
	generation int64
	to         revision.Revision
	refused    string // why the API server did not accept the return; empty if it was not tried
}

// Of returns the revision to return to, if it is known for this generation.
func (f *RollbackTargets) Of(key types.NamespacedName, generation int64) (revision.Revision, bool) {
	known, ok := f.Get(key)
	return known.to, ok && known.generation == generation
}

// Learn records the revision to return to; number 0 means that there is none.
func (f *RollbackTargets) Learn(key types.NamespacedName, generation int64, to revision.Revision) {
	f.Put(key, rollbackTarget{generation: generation, to: to})
}

// Refuse records that the API server did not accept the return, so that it is not asked again.
func (f *RollbackTargets) Refuse(key types.NamespacedName, generation int64, why string) {
	f.Put(key, rollbackTarget{generation: generation, refused: why})
}

// Refusal is why the API server did not accept the return; empty if it was not tried.
func (f *RollbackTargets) Refusal(key types.NamespacedName, generation int64) string {
	if known, ok := f.Get(key); ok && known.generation == generation {
		return known.refused
	}
	return ""
}
