// Package readyourwrites makes the operator read its own writes: nothing is decided
// about an object before the cache shows what was last written for it.
//
// A cache that lags behind shows a world in which the last step was not taken, so
// the step would be taken twice. Instead of waiting a while and hoping, each write
// is remembered with the version the API server gave it.
package readyourwrites

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// Doubt is how long a write may stay unseen before the API server itself is asked
// whether it still stands: someone may have deleted the object meanwhile, and then
// no cache will ever show it.
const Doubt = 2 * time.Second

// Tracker remembers the unseen writes of each owner. It is safe for concurrent use.
type Tracker struct {
	cached, live client.Reader
	now          func() time.Time

	mu      sync.Mutex
	pending map[types.NamespacedName]map[string]write
	awaited map[types.NamespacedName]bool // somebody asked in vain whether the cache has caught up
}

// write is one write that the cache may not show yet.
type write struct {
	object  client.Object
	version string // empty for a deletion
	at      time.Time
}

// New returns a tracker that compares the cached reader with what was written, and
// asks the live reader in doubt.
func New(cached, live client.Reader, now func() time.Time) *Tracker {
	return &Tracker{
		cached: cached, live: live, now: now,
		pending: map[types.NamespacedName]map[string]write{}, awaited: map[types.NamespacedName]bool{},
	}
}

// Wrote remembers that the object was written for the owner, with the
// resourceVersion that the API server returned in it.
func (t *Tracker) Wrote(owner types.NamespacedName, obj client.Object) {
	t.remember(owner, obj, obj.GetResourceVersion())
}

// Deleted remembers that the object was deleted for the owner.
func (t *Tracker) Deleted(owner types.NamespacedName, obj client.Object) {
	t.remember(owner, obj, "")
}

// Forget drops everything about the owner, e.g. when it is gone.
func (t *Tracker) Forget(owner types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, owner)
	delete(t.awaited, owner)
}

// IsOwnWrite reports whether what the cache shows now is only what was written for the owner,
// so that nobody needs to look at it: it was known when it was written. While CaughtUp
// has said no, nothing is an echo, for somebody waits for just that.
func (t *Tracker) IsOwnWrite(owner types.NamespacedName, shown client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := identity(shown)
	w, ours := t.pending[owner][id]
	if !ours || w.version != shown.GetResourceVersion() || t.awaited[owner] {
		return false
	}
	t.clear(owner, id)
	return true
}

func (t *Tracker) remember(owner types.NamespacedName, obj client.Object, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[owner] == nil {
		t.pending[owner] = map[string]write{}
	}
	t.pending[owner][identity(obj)] = write{object: ref(obj), version: version, at: t.now()}
}

// ref is enough of the object to ask for it, and to know it again: a step may make
// hundreds.
func ref(obj client.Object) client.Object {
	s := blank(obj)
	s.SetNamespace(obj.GetNamespace())
	s.SetName(obj.GetName())
	s.SetUID(obj.GetUID())
	if app, ok := obj.GetLabels()[lifecycle.LabelApp]; ok {
		s.SetLabels(map[string]string{lifecycle.LabelApp: app})
	}
	return s
}

func blank(obj client.Object) client.Object {
	b := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	b.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return b
}

func identity(obj client.Object) string {
	return fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj))
}

// CaughtUp reports whether the cache shows every write made for the owner.
func (t *Tracker) CaughtUp(ctx context.Context, owner types.NamespacedName) (bool, error) {
	for id, w := range t.unseen(owner) {
		seen, err := t.seen(ctx, w)
		if err != nil || !seen {
			return false, err
		}
		t.drop(owner, id, w)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.awaited, owner)
	return true, nil
}

// unseen are the writes that are not known to be shown. It is noted before the cache is
// looked at that somebody waits for them: what comes after the look is no echo.
func (t *Tracker) unseen(owner types.NamespacedName) map[string]write {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending[owner]) > 0 {
		t.awaited[owner] = true
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

func (t *Tracker) seen(ctx context.Context, w write) (bool, error) {
	shown, err := shows(ctx, t.cached, w)
	if err != nil || shown || t.now().Sub(w.at) < Doubt {
		return shown, err
	}
	return t.overtaken(ctx, w)
}

// shows reports whether the reader shows the write or something newer.
func shows(ctx context.Context, r client.Reader, w write) (bool, error) {
	got := blank(w.object)
	err := r.Get(ctx, client.ObjectKeyFromObject(w.object), got, client.UnsafeDisableDeepCopy)
	var uncached *cache.ErrResourceNotCached
	switch {
	case errors.As(err, &uncached):
		return true, nil // such a kind is always read from the API server
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

// overtaken reports whether the write no longer stands, so that the cache will
// never show it: what was written is gone or lost the label by which it is watched, or
// what was deleted is there again.
func (t *Tracker) overtaken(ctx context.Context, w write) (bool, error) {
	got := blank(w.object)
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
