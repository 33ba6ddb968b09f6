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

// watched is one object and its watch.
type watched struct {
	object client.Object // has the kind, the name, and the namespace only
	topic
	cache  cache.Cache
	synced <-chan struct{} // closed once the watch has synced
}

func (w *watched) key() client.ObjectKey { return client.ObjectKeyFromObject(w.object) }

// watchTopic is the topic of failures of the watch.
func (w *watched) watchTopic() topic { return topic{"watching " + w.name, w.loss} }

func (w *watched) isSynced() bool {
	select {
	case <-w.synced:
		return true
	default:
		return false
	}
}

// open creates a cache of that one object. The operator has no right to read any other, and
// a field selector names only one.
func (w *watched) open(mgr manager.Manager, log *dedupLogger) error {
	only := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", w.object.GetName()), Transform: dropUnused}
	if namespace := w.object.GetNamespace(); namespace != "" {
		only.Namespaces = map[string]cache.Config{namespace: {}}
	}
	store, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject:                 map[client.Object]cache.ByObject{w.object: only},
		DefaultWatchErrorHandler: w.onWatchError(log),
	})
	if err != nil {
		return fmt.Errorf("cannot create a cache of the %s: %w", w.name, err)
	}
	w.cache = store
	return nil
}

// dropUnused drops the schemas of a definition, which are large and not needed here.
func dropUnused(obj any) (any, error) {
	if d, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		d.Spec.Versions = nil
	}
	return cache.TransformStripManagedFields()(obj)
}

// onWatchError logs missing rights once. All other errors are temporary.
func (w *watched) onWatchError(log *dedupLogger) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			log.report(w.watchTopic(), err)
			return
		}
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

// watch starts to watch all objects. It retries while the API server is unavailable.
func (r *Rotator) watch(ctx context.Context) {
	for _, w := range r.allWatched() {
		go func() { r.log.report(topic{"cache of the " + w.name, w.loss}, w.cache.Start(ctx)) }()
		_ = wait.PollUntilContextCancel(ctx, firstRetry, true, func(ctx context.Context) (bool, error) {
			err := r.subscribe(ctx, w)
			r.log.report(topic{"subscription to the " + w.name, w.loss}, err)
			return err == nil, nil
		})
	}
}

func (r *Rotator) allWatched() []*watched {
	all := []*watched{&r.secret}
	for _, t := range r.targets {
		all = append(all, &t.watched)
	}
	return all
}

func (r *Rotator) subscribe(ctx context.Context, w *watched) error {
	informer, err := w.cache.GetInformer(ctx, w.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { r.requeue() },
		UpdateFunc: func(any, any) { r.requeue() },
		DeleteFunc: func(any) { r.requeue() },
	})
	if err != nil {
		return err
	}
	w.synced = handler.HasSyncedChecker().Done()
	go r.requeueOnSync(ctx, w.synced)
	return nil
}

// requeueOnSync requeues when a watch has synced. A missing object causes no event.
func (r *Rotator) requeueOnSync(ctx context.Context, synced <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-synced:
		r.requeue()
	}
}

func (r *Rotator) requeue() {
	select {
	case r.changed <- struct{}{}:
	default: // the next reconcile sees this change too
	}
}

// find reads the object from the watch. It returns false if the watch shows none.
func (r *Rotator) find(ctx context.Context, w *watched, into client.Object) (bool, error) {
	if !w.isSynced() {
		return false, nil
	}
	r.log.report(w.watchTopic(), nil)
	err := w.cache.Get(ctx, w.key(), into)
	return err == nil, client.IgnoreNotFound(err)
}
