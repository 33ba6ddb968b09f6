package engine

import (
	"context"
	"fmt"
	"slices"

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
	return e.operator.policies.Selecting(e.subject(obj))
}

// subject is the object as policies see it.
func (e *engine[T, W]) subject(obj client.Object) policy.Object {
	return policy.Object{
		Group: e.gvk.Group, Kind: e.gvk.Kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), Labels: obj.GetLabels(),
	}
}

// Peers implements fleet: the application's objects as the cache has them.
func (e *engine[T, W]) Peers(ctx context.Context) ([]policy.Peer, error) {
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

// HolderName implements fleet.
func (e *engine[T, W]) HolderName(o policy.Object) string {
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
		held := apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionChangeHeld)
		p.Settled = c.Status == metav1.ConditionTrue && !held && *observed == obj.GetGeneration()
	}
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		p.Stalled = c.Reason
	}
	return p
}

// holding returns the names of the policies that hold the object now.
func (r *result) holding() []string {
	refusals := r.refusals
	if r.held != nil {
		refusals = slices.Concat(refusals, r.held.refusals)
	}
	var names []string
	for _, refusal := range refusals {
		if refusal.Policy != "" && !slices.Contains(names, refusal.Policy) {
			names = append(names, refusal.Policy)
		}
	}
	return names
}
