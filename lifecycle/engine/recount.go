package engine

import (
	"slices"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// recounts remembers when an object's status was last written. It is kept in memory: who
// has just started writes at once.
type recounts struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

func (c *recounts) note(key types.NamespacedName, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[types.NamespacedName]time.Time{}
	}
	c.last[key] = now
}

func (c *recounts) of(key types.NamespacedName) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[key]
}

func (c *recounts) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, key)
}

// putOff reports whether the status may be told later, and sets when: it waits for what
// it waited for before, and only its numbers are others.
func (e *engine[T, W]) putOff(r *report[T, W]) bool {
	if e.app.Recount == 0 || r.decision.Outcome != lifecycle.Waiting || saysMore(r.before, r.obj) {
		return false
	}
	due := e.recounts.of(r.key).Add(e.app.Recount)
	if !e.now().Before(due) {
		return false
	}
	r.recount = due
	return true
}

// saysMore reports whether the conditions are about something else, and not only in
// other words.
func saysMore(before, now lifecycle.Custom) bool {
	_, was := before.Told()
	_, is := now.Told()
	return len(*was) != len(*is) || slices.ContainsFunc(*is, func(c metav1.Condition) bool {
		old := apimeta.FindStatusCondition(*was, c.Type)
		return old == nil || old.Status != c.Status || old.Reason != c.Reason || old.ObservedGeneration != c.ObservedGeneration
	})
}
