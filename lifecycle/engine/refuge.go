package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/kube/revision"
)

// refuges remembers, of each object that has failed, which revision it could return to;
// one of number 0 says that there is none.
type refuges struct {
	mu    sync.Mutex
	known map[types.NamespacedName]refuge
}

type refuge struct {
	generation int64
	to         revision.Revision
}

func (f *refuges) of(key types.NamespacedName, generation int64) (revision.Revision, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[key]
	return known.to, ok && known.generation == generation
}

func (f *refuges) learn(key types.NamespacedName, generation int64, to revision.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[types.NamespacedName]refuge{}
	}
	f.known[key] = refuge{generation: generation, to: to}
}

func (f *refuges) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, key)
}
