package webhookcert

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	object client.Object // says which, and is otherwise blank
	matter
	cache  cache.Cache
	synced <-chan struct{} // closed once the watch has shown what there is
}

func (v *view) key() client.ObjectKey { return client.ObjectKeyFromObject(v.object) }

// watching is the matter of seeing it at all.
func (v *view) watching() matter { return matter{"watching " + v.name, v.loss} }

func (v *view) ready() bool {
	select {
	case <-v.synced:
		return true
	default:
		return false
	}
}

// open gives the view a cache of that one object: the operator may not read, and
// does not keep in memory, any other, and a selector can name only one.
func (v *view) open(mgr manager.Manager, h *herald) error {
	only := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", v.object.GetName()), Transform: slim}
	if namespace := v.object.GetNamespace(); namespace != "" {
		only.Namespaces = map[string]cache.Config{namespace: {}}
	}
	store, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject:                 map[client.Object]cache.ByObject{v.object: only},
		DefaultWatchErrorHandler: v.failed(h),
	})
	if err != nil {
		return fmt.Errorf("cannot make a cache of the %s: %w", v.name, err)
	}
	v.cache = store
	return nil
}

// slim drops what nobody asks for here and is large: the schemas of a definition.
func slim(obj any) (any, error) {
	if d, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		d.Spec.Versions = nil
	}
	return cache.TransformStripManagedFields()(obj)
}

// failed says once what rights are missing; the rest passes by itself.
func (v *view) failed(h *herald) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			h.tell(v.watching(), err)
			return
		}
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// watch begins to see all objects. While the API server is away it tries again.
func (k *Keeper) watch(ctx context.Context) {
	for _, v := range k.views() {
		go func() { k.herald.tell(matter{"cache of the " + v.name, v.loss}, v.cache.Start(ctx)) }()
		_ = wait.PollUntilContextCancel(ctx, firstRetry, true, func(ctx context.Context) (bool, error) {
			err := k.subscribe(ctx, v)
			k.herald.tell(matter{"subscription to the " + v.name, v.loss}, err)
			return err == nil, nil
		})
	}
}

func (k *Keeper) views() []*view {
	all := []*view{&k.secret}
	for _, c := range k.callers {
		all = append(all, &c.view)
	}
	return all
}

func (k *Keeper) subscribe(ctx context.Context, v *view) error {
	informer, err := v.cache.GetInformer(ctx, v.object, cache.BlockUntilSynced(false))
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
func (k *Keeper) find(ctx context.Context, v *view, into client.Object) (bool, error) {
	if !v.ready() {
		return false, nil
	}
	k.herald.tell(v.watching(), nil)
	err := v.cache.Get(ctx, v.key(), into)
	return err == nil, client.IgnoreNotFound(err)
}
