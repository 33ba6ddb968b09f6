// Package readyourwrites makes the operator read its own writes. The operator decides
// nothing about an object before the cache shows the last write for it.
//
// A lagging cache shows a world without the last step, so the operator would take that
// step twice. A fixed wait would not be safe. The tracker records each write with the
// resourceVersion that the API server returned.
package readyourwrites

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// VerifyAfter is how long a write may stay unseen before the tracker checks it against the API
// server. Another client may have deleted the object since: then no cache shows the write.
const VerifyAfter = 2 * time.Second

// Tracker records the unseen writes of each owner. It is safe for concurrent use.
type Tracker struct {
	cached, live client.Reader
	now          func() time.Time

	mu      sync.Mutex
	pending map[types.NamespacedName]map[string]write
	waiting map[types.NamespacedName]bool // owners for which CaughtUp has returned false
}

// write is a write that the cache may not show yet.
type write struct {
	object  client.Object
	version string // empty for a deletion
	at      time.Time
}

// New returns a tracker that compares recorded writes with the cached reader. It checks
// with the live reader a write that stays unseen for longer than Doubt.
func New(cached, live client.Reader, now func() time.Time) *Tracker {
	return &Tracker{
		cached: cached, live: live, now: now,
		pending: map[types.NamespacedName]map[string]write{}, waiting: map[types.NamespacedName]bool{},
	}
}

// Wrote records a write of the object for the owner, with the resourceVersion that the API
// server returned in obj.
func (t *Tracker) Wrote(owner types.NamespacedName, obj client.Object) {
	t.record(owner, obj, obj.GetResourceVersion())
}

// Deleted records a deletion of the object for the owner.
func (t *Tracker) Deleted(owner types.NamespacedName, obj client.Object) {
	t.record(owner, obj, "")
}

// Forget drops the records of the owner, e.g. when it has been deleted.
func (t *Tracker) Forget(owner types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, owner)
	delete(t.waiting, owner)
}

// IsOwnWrite reports whether the shown version is exactly the one written for the owner.
// Such an event needs no reconcile, because the writer knows its content. It returns false
// from the time CaughtUp returns false until it returns true: a reconcile then waits for
// this event.
func (t *Tracker) IsOwnWrite(owner types.NamespacedName, shown client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := identity(shown)
	w, ours := t.pending[owner][id]
	if !ours || w.version != shown.GetResourceVersion() || t.waiting[owner] {
		return false
	}
	t.clear(owner, id)
	return true
}

func (t *Tracker) record(owner types.NamespacedName, obj client.Object, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[owner] == nil {
		t.pending[owner] = map[string]write{}
	}
	t.pending[owner][identity(obj)] = write{object: ref(obj), version: version, at: t.now()}
}

// ref returns the fields of the object that identify it and locate it in the API. A step
// may write hundreds of objects, so the tracker does not keep whole ones.
func ref(obj client.Object) client.Object {
	s := newObject(obj)
	s.SetNamespace(obj.GetNamespace())
	s.SetName(obj.GetName())
	s.SetUID(obj.GetUID())
	if app, ok := obj.GetLabels()[lifecycle.LabelApp]; ok {
		s.SetLabels(map[string]string{lifecycle.LabelApp: app})
	}
	return s
}

// newObject returns an empty object of the kind, of the type that a cache has for it.
func newObject(obj client.Object) client.Object {
	if _, ok := obj.(runtime.Unstructured); ok {
		return inForm(&unstructured.Unstructured{}, obj.GetObjectKind().GroupVersionKind())
	}
	b := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	b.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return b
}

// identity names the object and its kind, which of an unstructured one is not that of its Go type.
func identity(obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if _, ok := obj.(runtime.Unstructured); ok {
		kind = obj.GetObjectKind().GroupVersionKind().GroupKind().String()
	}
	return kind + " " + client.ObjectKeyFromObject(obj).String()
}

// CaughtUp reports whether the cache shows every write made for the owner.
func (t *Tracker) CaughtUp(ctx context.Context, owner types.NamespacedName) (bool, error) {
	for id, w := range t.unseen(owner) {
		seen, err := t.isSeen(ctx, w)
		if err != nil || !seen {
			return false, err
		}
		t.drop(owner, id, w)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, owner)
	return true, nil
}

// unseen returns the writes that are not known to be in the cache. It marks the owner as
// waiting before the caller reads the cache: a later event must trigger a reconcile.
func (t *Tracker) unseen(owner types.NamespacedName) map[string]write {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending[owner]) > 0 {
		t.waiting[owner] = true
	}
	writes := make(map[string]write, len(t.pending[owner]))
	for id, w := range t.pending[owner] {
		writes[id] = w
	}
	return writes
}

func (t *Tracker) drop(owner types.NamespacedName, id string, w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[owner][id] == w {
		t.clear(owner, id)
	}
}

func (t *Tracker) clear(owner types.NamespacedName, id string) {
	delete(t.pending[owner], id)
	if len(t.pending[owner]) == 0 {
		delete(t.pending, owner)
	}
}

func (t *Tracker) isSeen(ctx context.Context, w write) (bool, error) {
	shown, err := shows(ctx, t.cached, w)
	if err != nil || shown || t.now().Sub(w.at) < VerifyAfter {
		return shown, err
	}
	return t.superseded(ctx, w)
}

// shows reports whether the reader shows the write or a newer version.
func shows(ctx context.Context, r client.Reader, w write) (bool, error) {
	got, err := read(ctx, r, w.object)
	switch {
	case isUncached(err):
		return true, nil // the client always reads such a kind from the API server
	case apierrors.IsNotFound(err):
		return w.version == "", nil
	case err != nil:
		return false, err
	case w.version == "":
		replaced := w.object.GetUID() != "" && got.GetUID() != w.object.GetUID()
		return replaced || got.GetDeletionTimestamp() != nil, nil
	}
	order, err := resourceversion.CompareResourceVersion(got.GetResourceVersion(), w.version)
	return order >= 0, err
}

func isUncached(err error) bool {
	var uncached *cache.ErrResourceNotCached
	return errors.As(err, &uncached)
}

// read reads the object in the form in which the cache has its kind: as a Go type, the metadata
// alone, or unstructured.
func read(ctx context.Context, r client.Reader, obj client.Object) (client.Object, error) {
	got := newObject(obj)
	err := r.Get(ctx, client.ObjectKeyFromObject(obj), got, client.UnsafeDisableDeepCopy)
	c, ok := r.(client.Client)
	if !isUncached(err) || !ok {
		return got, err
	}
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	for _, form := range []client.Object{&metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}} {
		got = inForm(form, kind)
		if err = r.Get(ctx, client.ObjectKeyFromObject(obj), got, client.UnsafeDisableDeepCopy); !isUncached(err) {
			break
		}
	}
	return got, err
}

func inForm(form client.Object, kind schema.GroupVersionKind) client.Object {
	form.GetObjectKind().SetGroupVersionKind(kind)
	return form
}

// superseded reports whether a later change hides the write, so that the cache never shows
// it. Either the written object is gone or lost the label by which it is watched, or the
// deleted object exists again.
func (t *Tracker) superseded(ctx context.Context, w write) (bool, error) {
	got := newObject(w.object)
	err := t.live.Get(ctx, client.ObjectKeyFromObject(w.object), got)
	switch deletion := w.version == ""; {
	case apierrors.IsNotFound(err):
		return !deletion, nil
	case err != nil:
		return false, err
	case deletion:
		return got.GetDeletionTimestamp() == nil, nil
	}
	app := w.object.GetLabels()[lifecycle.LabelApp]
	return got.GetUID() != w.object.GetUID() || app != "" && got.GetLabels()[lifecycle.LabelApp] != app, nil
}
