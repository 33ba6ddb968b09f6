package certificate

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory knows, per owner, in which state nothing was to be made, and until when.
// Certificates are parsed only when that has changed.
type memory struct {
	mu       sync.Mutex
	verdicts map[types.NamespacedName]verdict
}

type verdict struct {
	state [sha256.Size]byte
	due   time.Time
}

func (m *memory) learn(owner types.NamespacedName, v verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.verdicts == nil {
		m.verdicts = map[types.NamespacedName]verdict{}
	}
	m.verdicts[owner] = v
}

// due returns when the state is to be judged again, and false if that is now.
func (m *memory) due(owner types.NamespacedName, state [sha256.Size]byte, now time.Time) (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.verdicts[owner]
	return v.due, ok && v.state == state && now.Before(v.due)
}

func (m *memory) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.verdicts, owner)
}
