package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory knows, per owner, in which version an object was found or made to be as
// declared: then the next turn need not compare. It also stops a turn from writing
// again what the API server takes for no change.
type memory struct {
	mu    sync.Mutex
	notes map[types.NamespacedName]map[identity]note
}

type note struct {
	id      types.UID
	version string // empty if others have changed it
	state   string // that of the version; empty if it was not looked at yet
	sum     fingerprint
	// content is what was declared of an object that others have changed.
	content *unstructured.Unstructured
}

func (m *memory) learn(owner types.NamespacedName, id identity, obj client.Object, sum fingerprint) {
	m.put(owner, id, note{id: obj.GetUID(), version: obj.GetResourceVersion(), sum: sum})
}

// differ notes an object that others have changed: it is compared in every turn.
func (m *memory) differ(owner types.NamespacedName, id identity, uid types.UID, d declared) {
	m.put(owner, id, note{id: uid, sum: d.sum, content: d.content})
}

func (m *memory) put(owner types.NamespacedName, id identity, n note) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[types.NamespacedName]map[identity]note{}
	}
	if m.notes[owner] == nil {
		m.notes[owner] = map[identity]note{}
	}
	m.notes[owner][id] = n
}

// same reports whether the object still is as declared: of the version that was noted, or
// of a later one in which nothing changed but its status.
func (m *memory) same(owner types.NamespacedName, id identity, obj client.Object, sum fingerprint) bool {
	n, ok := m.of(owner, id)
	if !ok || n.id != obj.GetUID() || n.sum != sum || n.version == "" {
		return false
	}
	known := n.version == obj.GetResourceVersion()
	if known && n.state != "" {
		return true
	}
	is := stateOf(obj)
	if is != "" && (known || is == n.state) {
		n.version, n.state = obj.GetResourceVersion(), is
		m.put(owner, id, n)
		return true
	}
	return known
}

// otherwise reports whether something else was declared before.
func (m *memory) otherwise(owner types.NamespacedName, id identity, sum fingerprint) bool {
	n, known := m.of(owner, id)
	return known && n.sum != sum
}

func (m *memory) of(owner types.NamespacedName, id identity) (note, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.notes[owner][id]
	return n, ok
}

// drop forgets an object that is no longer wanted.
func (m *memory) drop(owner types.NamespacedName, id identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes[owner], id)
}

func (m *memory) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, owner)
}
