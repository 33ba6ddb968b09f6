// Package wake finds the custom resources that a change of another object reconciles, and how urgently.
package wake

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
)

// Queue is that of the controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Queue priorities. What a restart finds at rest has the library's own, which is
// lower than both.
const (
	// Urgent is that of an object that lost something.
	Urgent = 100
	// Ordinary is the priority of a change of the spec.
	Ordinary = 0
)

// Priority returns the priority of the reconcile after this decision. Nil keeps the present
// priority: a retry is as urgent as the attempt.
func Priority(d lifecycle.Decision) *int {
	switch {
	case d.IsRepair():
		return new(Urgent)
	case d.Outcome == lifecycle.OutcomeRetry:
		return nil
	}
	return new(Ordinary)
}

// Running is the queue of a controller, once that runs. The zero value is ready.
type Running struct{ queue atomic.Pointer[Queue] }

// Begin notes the queue.
func (r *Running) Begin(q Queue) { r.queue.Store(&q) }

// Add reconciles the object now. Before the controller runs it does nothing.
func (r *Running) Add(key types.NamespacedName) {
	if q := r.queue.Load(); q != nil {
		(*q).Add(reconcile.Request{NamespacedName: key})
	}
}

// Len is the number of objects in the queue.
func (r *Running) Len() int {
	if q := r.queue.Load(); q != nil {
		return (*q).Len()
	}
	return 0
}
