package engine

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle/policy"
)

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
		if obj, ok := e.app.typed(o); ok {
			all = append(all, e.policies.Peer(obj))
		}
		return nil
	})
	return all, err
}

// HolderName implements fleet.
func (e *engine[T, W]) HolderName(o policy.Object) string {
	return e.holder(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
}
