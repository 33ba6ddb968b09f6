package wake

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
)

// OwnedHandler hears of what belongs to objects.
type OwnedHandler struct {
	App    string        // whose objects they are
	Gather time.Duration // how long more news are waited for
	Heard  func(key types.NamespacedName)
}

// Handler wakes the object that the label names, after the time in which news are
// gathered; a loss wakes it before others. Of what passes from one object to another
// both hear.
func (r OwnedHandler) Handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q Queue) { r.wake(q, nil, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q Queue) {
			if instanceOf(e.ObjectOld) != instanceOf(e.ObjectNew) {
				r.wake(q, new(Urgent), e.ObjectOld)
			}
			if lost(e.ObjectOld, e.ObjectNew) {
				r.wake(q, new(Urgent), e.ObjectNew)
				return
			}
			r.wake(q, nil, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q Queue) { r.wake(q, new(Urgent), e.Object) },
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

// wake reconciles the custom resource that obj belongs to. The queue joins what comes for the
// same object until then, and knows by itself what a restart finds at rest.
func (r OwnedHandler) wake(q Queue, priority *int, obj client.Object) {
	req := instanceOf(obj)
	if req.Name == "" || obj.GetLabels()[lifecycle.LabelApp] != r.App {
		return // a selector of the author's own also selects what belongs to no object
	}
	r.Heard(req.NamespacedName)
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: priority, After: r.Gather}, req)
		return
	}
	q.AddAfter(req, r.Gather)
}
