package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
)

// Queue priorities. What a restart finds at rest has the library's own, which is
// lower than both.
const (
	// urgent is that of an object that lost something.
	urgent = 100
	// ordinary is that of a wish.
	ordinary = 0
)

// belongings wakes the object that the label names; a loss wakes it first. Of what
// passes from one object to another both hear.
func belongings() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(instanceOf(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if before := instanceOf(e.ObjectOld); before != instanceOf(e.ObjectNew) {
				hurry(q, before)
			}
			if lost(e.ObjectOld, e.ObjectNew) {
				hurry(q, instanceOf(e.ObjectNew))
				return
			}
			q.Add(instanceOf(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { hurry(q, instanceOf(e.Object)) },
	}
}

// lost reports whether a pod did its work and does it no more.
func lost(before, now client.Object) bool {
	was, ok := before.(*corev1.Pod)
	if !ok {
		return false
	}
	is, ok := now.(*corev1.Pod)
	return ok && (answers(was) && !answers(is) || !ended(was) && ended(is))
}

func answers(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

func instanceOf(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: obj.GetNamespace(), Name: obj.GetLabels()[lifecycle.LabelInstance],
	}}
}

func hurry(q queue, req reconcile.Request) {
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: new(urgent)}, req)
		return
	}
	q.Add(req)
}

// urgency returns the priority of the turn after this decision. Nil leaves it: a
// turn that is tried again is as urgent as it was.
func urgency(d lifecycle.Decision) *int {
	switch {
	case d.Repairs():
		return new(urgent)
	case d.Outcome == lifecycle.Retrying:
		return nil
	}
	return new(ordinary)
}
