package rollback

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/kube/revision"
)

// targets remembers, of each object that has failed, which revision it could return to;
// one of number 0 says that there is none.
type targets struct{ memory.Map[rollbackTarget] }

type rollbackTarget struct {
	generation int64
	to         revision.Revision
	refused    string // why the API server did not accept the return; empty if it was not tried
}

// of returns the revision to return to, if it is known for this generation.
func (f *targets) of(key types.NamespacedName, generation int64) (revision.Revision, bool) {
	known, ok := f.Get(key)
	return known.to, ok && known.generation == generation
}

// learn records the revision to return to; number 0 means that there is none.
func (f *targets) learn(key types.NamespacedName, generation int64, to revision.Revision) {
	f.Put(key, rollbackTarget{generation: generation, to: to})
}

// refuse records that the API server did not accept the return, so that it is not asked again.
func (f *targets) refuse(key types.NamespacedName, generation int64, why string) {
	f.Put(key, rollbackTarget{generation: generation, refused: why})
}

// refusal is why the API server did not accept the return; empty if it was not tried.
func (f *targets) refusal(key types.NamespacedName, generation int64) string {
	if known, ok := f.Get(key); ok && known.generation == generation {
		return known.refused
	}
	return ""
}
