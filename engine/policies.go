package engine

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// policy returns what all policies that select the object say together.
func (e *engine[T, W]) policy(obj lifecycle.Object) policy.Effective {
	return e.selecting(obj).Effective()
}

func (e *engine[T, W]) selecting(obj lifecycle.Object) policy.Set {
	return e.operator.policies.selecting(e.subject(obj))
}

// subject is the object as policies see it.
func (e *engine[T, W]) subject(obj client.Object) policy.Object {
	return policy.Object{
		Group: e.gvk.Group, Kind: e.gvk.Kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), Labels: obj.GetLabels(),
	}
}

// isPaused reports whether the object itself or a policy asks to keep the hands off.
func (e *engine[T, W]) isPaused(obj lifecycle.Object) bool {
	return asksForPause(obj) || e.policy(obj).Paused()
}

func asksForPause(obj lifecycle.Object) bool {
	p, ok := obj.(lifecycle.Pausable)
	return ok && p.IsPaused() || obj.GetAnnotations()[lifecycle.AnnotationPaused] == "true"
}

// whyPaused says who pauses the object, and what resumes it.
func (e *engine[T, W]) whyPaused(obj lifecycle.Object) string {
	by := e.policy(obj).PausedBy
	var ways []string
	if len(by) > 0 {
		ways = append(ways, fmt.Sprintf("spec.paused of %s", policy.Said(by)))
	}
	if asksForPause(obj) {
		ways = append(ways, "spec.paused or the annotation "+lifecycle.AnnotationPaused)
	}
	return "The operator observes only. Remove " + strings.Join(ways, ", and ") + " to resume."
}

// peers implements fleet: the application's objects as the cache has them.
func (e *engine[T, W]) peers(ctx context.Context) ([]policy.Peer, error) {
	list, err := e.blankList()
	if err != nil {
		return nil, err
	}
	if err := e.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var all []policy.Peer
	err = apimeta.EachListItem(list, func(o runtime.Object) error {
		if obj, ok := o.(T); ok {
			all = append(all, e.peer(obj))
		}
		return nil
	})
	return all, err
}

// called implements fleet.
func (e *engine[T, W]) called(o policy.Object) string {
	return e.holder(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
}

func (e *engine[T, W]) blankList() (client.ObjectList, error) {
	list, err := e.client.Scheme().New(e.gvk.GroupVersion().WithKind(e.gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("the scheme has no list of %s: %w", e.gvk.Kind, err)
	}
	return list.(client.ObjectList), nil
}

// peer is what others must know of the object.
func (e *engine[T, W]) peer(obj T) policy.Peer {
	p := policy.Peer{Object: e.subject(obj)}
	observed, conditions := obj.StatusFields()
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionReady); c != nil {
		p.Since = c.LastTransitionTime.Time
		p.Settled = c.Status == metav1.ConditionTrue && *observed == obj.GetGeneration()
	}
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		p.Stalled = c.Reason
	}
	return p
}
