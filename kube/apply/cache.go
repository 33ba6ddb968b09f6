package apply

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// appliedCache records, per owner, the version in which each object matched its
// declaration. The next reconcile then skips the comparison. It also prevents a repeated
// write that the API server treats as no change.
type appliedCache struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]map[identity]cacheEntry
}

type cacheEntry struct {
	uid     types.UID
	version string // empty if another manager changed the object
	state   string // the state of that version; empty before the first look at it
	sum     fingerprint
	// content is the declaration of an object that another manager changed.
	content *unstructured.Unstructured
	// overridden are the fields that an admission webhook changed; retry is when to apply them
	// again, and delay the time from the last attempt until then.
	overridden []string
	retry      time.Time
	delay      time.Duration
}

func (m *appliedCache) record(owner types.NamespacedName, id identity, obj client.Object, sum fingerprint) {
	m.put(owner, id, cacheEntry{uid: obj.GetUID(), version: obj.GetResourceVersion(), sum: sum})
}

// recordDrift records an object that another manager changed. Every reconcile compares it.
func (m *appliedCache) recordDrift(owner types.NamespacedName, id identity, uid types.UID, d declared) {
	m.put(owner, id, cacheEntry{uid: uid, sum: d.fingerprint, content: d.content})
}

func (m *appliedCache) put(owner types.NamespacedName, id identity, n cacheEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[types.NamespacedName]map[identity]cacheEntry{}
	}
	if m.entries[owner] == nil {
		m.entries[owner] = map[identity]cacheEntry{}
	}
	m.entries[owner][id] = n
}

// unchanged reports whether the object still matches its declaration: it has the recorded
// version, or a later one in which only the status changed.
func (m *appliedCache) unchanged(owner types.NamespacedName, id identity, obj client.Object, sum fingerprint) bool {
	n, ok := m.get(owner, id)
	if !ok || n.uid != obj.GetUID() || n.sum != sum || n.version == "" {
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

// declaredOtherwise reports whether the previous declaration was different.
func (m *appliedCache) declaredOtherwise(owner types.NamespacedName, id identity, sum fingerprint) bool {
	n, known := m.get(owner, id)
	return known && n.sum != sum
}

func (m *appliedCache) get(owner types.NamespacedName, id identity) (cacheEntry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.entries[owner][id]
	return n, ok
}

// removeIf removes the objects of the owner that satisfy the predicate.
func (m *appliedCache) removeIf(owner types.NamespacedName, is func(identity) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.entries[owner], func(id identity, _ cacheEntry) bool { return is(id) })
}

func (m *appliedCache) removeOwner(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, owner)
}
