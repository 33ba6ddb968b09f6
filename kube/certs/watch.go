package certs

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// view is one object as a watch shows it.
type view struct {
	kind   client.Object
	matter string          // of what is told about it
	synced <-chan struct{} // closed once the watch has shown what there is
}

func (v *view) ready() bool {
	select {
	case <-v.synced:
		return true
	default:
		return false
	}
}

// newCache sees the one Secret and the one webhook configuration: the operator may
// not read, and does not keep in memory, any other.
func newCache(mgr manager.Manager, o Options, failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
	store, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{o.Namespace: {}}, Field: named(o.Secret),
			},
			&configuration{}: {Field: named(o.Configuration)},
		},
		DefaultWatchErrorHandler: failed,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}
	return store, nil
}

func named(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// watchFailed says once what rights are missing; the rest passes by itself.
func (k *Keeper) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) {
		k.herald.tell(matterOf(err), err)
		return
	}
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
}

// The matters of lacking rights, as the API server names the kinds.
const (
	watchingSecret        = "watching secrets"
	watchingConfiguration = "watching validatingwebhookconfigurations"
)

func matterOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return "watching " + status.Status().Details.Kind
	}
	return "watching"
}

// watch begins to see both objects. While the API server is away it tries again.
func (k *Keeper) watch(ctx context.Context) {
	go func() { k.herald.tell("cache", k.cache.Start(ctx)) }()
	for _, v := range []*view{&k.secret, &k.config} {
		_ = wait.PollUntilContextCancel(ctx, firstRetry, true, func(ctx context.Context) (bool, error) {
			err := k.subscribe(ctx, v)
			k.herald.tell("subscription", err)
			return err == nil, nil
		})
	}
}

func (k *Keeper) subscribe(ctx context.Context, v *view) error {
	informer, err := k.cache.GetInformer(ctx, v.kind, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	r, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { k.wake() },
		UpdateFunc: func(any, any) { k.wake() },
		DeleteFunc: func(any) { k.wake() },
	})
	if err != nil {
		return err
	}
	v.synced = r.HasSyncedChecker().Done()
	go k.wakeOnce(ctx, v.synced)
	return nil
}

// wakeOnce wakes when a watch has shown what there is: of an object that is missing
// no event comes.
func (k *Keeper) wakeOnce(ctx context.Context, synced <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-synced:
		k.wake()
	}
}

func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default: // the next turn sees this too
	}
}

// find reads the object from the watch. It returns false if there is none, as far
// as is known.
func (k *Keeper) find(ctx context.Context, v view, key client.ObjectKey, into client.Object) (bool, error) {
	if !v.ready() {
		return false, nil
	}
	k.herald.tell(v.matter, nil)
	err := k.cache.Get(ctx, key, into)
	return err == nil, client.IgnoreNotFound(err)
}
