// Package memory is what the engine remembers about each object until the operator ends.
// All of it can be lost: it saves work, and no decision depends on it alone.
package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Map is what is remembered of each object until the operator ends. The zero memo is
// empty and ready; it is safe for concurrent use.
type Map[V any] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]V
}

// Get returns the value of the object, and whether it has one.
func (m *Map[V]) Get(key types.NamespacedName) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := m.known[key]
	return v, known
}

// Put sets the value of the object.
func (m *Map[V]) Put(key types.NamespacedName, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[types.NamespacedName]V{}
	}
	m.known[key] = v
}

// Forget drops the value of the object.
func (m *Map[V]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}
