package memory

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// ApplyCache remembers what the objects were when nothing had to be written to provide for
// them. As long as an object, its world, and all that belongs to it stay so, what is wanted
// need not be made and compared again. The zero value is empty and ready; it is safe for
// concurrent use.
type ApplyCache[W any] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*provision[W]
}

// provision is what is known of one object.
type provision[W any] struct {
	news  int       // how many events there were about what belongs to it
	basis *Basis[W] // what was seen when all was provided; nil if something is new since
}

// Basis is all that what is wanted follows from.
type Basis[W any] struct {
	uid     types.UID
	version string
	world   W
	Due     time.Time // when a certificate is to be looked at; zero if there is none
}

// NewBasis is what the resources of the object follow from.
func NewBasis[W any](obj lifecycle.Resource, world W, due time.Time) *Basis[W] {
	return &Basis[W]{obj.GetUID(), obj.GetResourceVersion(), world, due}
}

// Heard notes that something that belongs to the object is not as it was.
func (c *ApplyCache[W]) Heard(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(key)
	of.news++
	of.basis = nil
}

// News is to be asked before what belongs to the object is read.
func (c *ApplyCache[W]) News(key types.NamespacedName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(key).news
}

// Learn remembers that nothing had to be written, unless there has been news since.
func (c *ApplyCache[W]) Learn(key types.NamespacedName, news int, b *Basis[W]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.of(key); of.news == news {
		of.basis = b
	}
}

// Unchanged reports whether all is provided as it was, and until when.
func (c *ApplyCache[W]) Unchanged(key types.NamespacedName, obj lifecycle.Resource, world W, now time.Time) (due time.Time, yes bool) {
	c.mu.Lock()
	b := c.of(key).basis
	c.mu.Unlock()
	if b == nil || b.uid != obj.GetUID() || b.version != obj.GetResourceVersion() || !b.Due.IsZero() && !now.Before(b.Due) {
		return time.Time{}, false
	}
	return b.Due, reflect.DeepEqual(b.world, world)
}

// Forget drops an object that is gone.
func (c *ApplyCache[W]) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
}

// of returns what is known of the object; the caller holds the lock.
func (c *ApplyCache[W]) of(key types.NamespacedName) *provision[W] {
	if c.known == nil {
		c.known = map[types.NamespacedName]*provision[W]{}
	}
	of := c.known[key]
	if of == nil {
		of = &provision[W]{}
		c.known[key] = of
	}
	return of
}
