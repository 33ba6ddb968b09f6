package engine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/kube/revision"
)

// rollbackTargets remembers, of each object that has failed, which revision it could return to;
// one of number 0 says that there is none.
type rollbackTargets struct{ objectMap[rollbackTarget] }

type rollbackTarget struct {
	generation int64
	to         revision.Revision
	refused    string // why the API server did not accept the return; empty if it was not tried
}

func (f *rollbackTargets) of(key types.NamespacedName, generation int64) (revision.Revision, bool) {
	known, ok := f.get(key)
	return known.to, ok && known.generation == generation
}

func (f *rollbackTargets) learn(key types.NamespacedName, generation int64, to revision.Revision) {
	f.put(key, rollbackTarget{generation: generation, to: to})
}

// refuse records that the API server did not accept the return, so that it is not asked again.
func (f *rollbackTargets) refuse(key types.NamespacedName, generation int64, why string) {
	f.put(key, rollbackTarget{generation: generation, refused: why})
}

// refusal is why the API server did not accept the return; empty if it was not tried.
func (f *rollbackTargets) refusal(key types.NamespacedName, generation int64) string {
	if known, ok := f.get(key); ok && known.generation == generation {
		return known.refused
	}
	return ""
}
