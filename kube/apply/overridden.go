package apply

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An object that an admission webhook or policy changed while it was written is applied again after firstRetry, and then
// after twice the time, up to lastRetry. The end of the webhook causes no event.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// overriddenFields are the fields in which the API server's answer to a write differs from the declaration.
func (a *Applier) overriddenFields(d declared, answer *unstructured.Unstructured) []string {
	stored := d.newObject()
	if u, ok := stored.(*unstructured.Unstructured); ok {
		u.Object = answer.Object
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, stored); err != nil {
		return nil
	}
	if !slices.ContainsFunc(stored.GetManagedFields(), isApplyEntry) {
		return nil // it is not known which of the fields are the declaration's
	}
	fields, err := a.difference(d, stored)
	if err != nil {
		return nil // the next reconcile compares the object in the cache, and reports the error
	}
	return fields
}

// Overridden returns the owner's objects that an admission webhook or policy changed while they were
// written, and when to apply them again.
func (a *Applier) Overridden(owner types.NamespacedName) (all []Drift, retry time.Time) {
	return a.cache.overridden(owner)
}

func (m *appliedCache) overridden(owner types.NamespacedName) (all []Drift, retry time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, n := range m.entries[owner] {
		if len(n.overridden) == 0 {
			continue
		}
		all = append(all, Drift{Kind: id.kind, Name: id.name, Fields: n.overridden, Managers: []string{"an admission webhook or policy"}})
		if retry.IsZero() || n.retry.Before(retry) {
			retry = n.retry
		}
	}
	slices.SortFunc(all, func(x, y Drift) int { return strings.Compare(x.String(), y.String()) })
	return all, retry
}

// recordOverridden records an object that does not match its declaration although it was just applied.
func (m *appliedCache) recordOverridden(owner types.NamespacedName, id identity, obj client.Object, sum fingerprint, fields []string, now time.Time) {
	delay := firstRetry
	if before, _ := m.get(owner, id); before.delay > 0 {
		delay = min(2*before.delay, lastRetry)
	}
	m.put(owner, id, cacheEntry{
		uid: obj.GetUID(), version: obj.GetResourceVersion(), sum: sum, overridden: fields, delay: delay, retry: now.Add(delay),
	})
}

// isDue reports whether an overridden object is to be applied again.
func (m *appliedCache) isDue(owner types.NamespacedName, id identity, now time.Time) bool {
	n, _ := m.get(owner, id)
	return len(n.overridden) > 0 && !now.Before(n.retry)
}
