package caching

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SpecManagers knows who wrote the spec of each object. The cache keeps no managed fields:
// they are as large as the object, and of them only this name is of interest.
type SpecManagers struct {
	mu    sync.Mutex
	known map[types.NamespacedName]authorship
}

// authorship is the last writer of a spec, and the managedFields entries that name it.
type authorship struct {
	name    string
	entries []uint64
}

// Strip is the cache's transform of custom resources: it drops the managed fields and
// remembers the name.
func (a *SpecManagers) Strip(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok && len(o.GetManagedFields()) > 0 {
		a.Note(client.ObjectKeyFromObject(o), o.GetManagedFields())
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// Note takes the entries that were not there before for those of the author: that of
// the scale subresource has no time (kubernetes/kubernetes, CustomResourceDefinitions).
func (a *SpecManagers) Note(key types.NamespacedName, entries []metav1.ManagedFieldsEntry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, now := a.known[key], authorship{}
	var fresh []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if !aboutSpec(e) {
			continue
		}
		sum := fingerprint(e)
		now.entries = append(now.entries, sum)
		if !slices.Contains(before.entries, sum) {
			fresh = append(fresh, e)
		}
	}
	if now.name = youngest(fresh); now.name == "" {
		now.name = before.name
	}
	if a.known == nil {
		a.known = map[types.NamespacedName]authorship{}
	}
	a.known[key] = now
}

// fingerprint identifies the write that an entry is of. Fields that others take over
// leave it as it was.
func fingerprint(e metav1.ManagedFieldsEntry) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, e.Manager, " ", e.Operation, " ", e.Subresource, " ", e.Time)
	if e.Time == nil {
		_, _ = h.Write(e.FieldsV1.GetRawBytes())
	}
	return h.Sum64()
}

// Of returns the field manager that set the object's spec last; empty if not known.
func (a *SpecManagers) Of(key types.NamespacedName) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[key].name
}

// Forget drops an object that is gone.
func (a *SpecManagers) Forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, key)
}

var specKey = []byte(`"f:spec"`)

func aboutSpec(e metav1.ManagedFieldsEntry) bool {
	return e.Subresource != "status" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), specKey)
}

// youngest is the manager of the youngest of the entries; of one without a time if there
// is none with.
func youngest(entries []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range entries {
		if last.Time == nil || e.Time != nil && !e.Time.Before(last.Time) {
			last = e
		}
	}
	return last.Manager
}
