package engine

import (
	"bytes"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// authors knows who wrote the spec of each object. The cache keeps no managed fields:
// they are as large as the object, and of them only this name is of interest.
type authors struct {
	mu    sync.Mutex
	names map[types.NamespacedName]string
}

// strip is the cache's transform of custom resources: it drops the managed fields and
// remembers the name.
func (a *authors) strip(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok && len(o.GetManagedFields()) > 0 {
		a.note(client.ObjectKeyFromObject(o), author(o.GetManagedFields()))
		o.SetManagedFields(nil)
	}
	return obj, nil
}

func (a *authors) note(key types.NamespacedName, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.names = map[types.NamespacedName]string{}
	}
	a.names[key] = name
}

// of returns the field manager that set the object's spec last; empty if nobody knows.
func (a *authors) of(key types.NamespacedName) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.names[key]
}

func (a *authors) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, key)
}

var specKey = []byte(`"f:spec"`)

// author is the manager of the youngest entry about the spec.
func author(entries []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range entries {
		about := e.Subresource == "" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), specKey)
		if about && (last.Time == nil || e.Time != nil && !e.Time.Before(last.Time)) {
			last = e
		}
	}
	return last.Manager
}
