package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// objectMap is what is remembered of each object until the operator ends. The zero memo is
// empty and ready; it is safe for concurrent use.
type objectMap[V any] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]V
}

func (m *objectMap[V]) get(key types.NamespacedName) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := m.known[key]
	return v, known
}

func (m *objectMap[V]) put(key types.NamespacedName, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[types.NamespacedName]V{}
	}
	m.known[key] = v
}

func (m *objectMap[V]) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}
