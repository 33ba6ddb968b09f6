// Package crd reports when the API server begins and ends to serve a custom resource.
package crd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// establishing is how long the API server may take to serve a CRD that it has
	// accepted; then discovery is asked again, ever more slowly: the group may have
	// other kinds only.
	establishing = 250 * time.Millisecond
	// longest is the slowest pace of asking.
	longest = 5 * time.Minute
)

// Watcher knows which custom resource definitions exist. It keeps their metadata
// only, a few hundred bytes each.
type Watcher struct {
	mgr manager.Manager

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

// NewWatcher returns a watcher, to be added to the manager.
func NewWatcher(mgr manager.Manager) *Watcher {
	return &Watcher{mgr: mgr, changed: make(chan struct{})}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Watcher) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k *Watcher) Start(ctx context.Context) error {
	informer, err := k.mgr.GetCache().GetInformer(ctx, definition())
	if err != nil {
		return fmt.Errorf("cannot watch custom resource definitions: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { k.signal() },
		UpdateFunc: func(any, any) { k.signal() },
		DeleteFunc: func(any) { k.signal() },
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func definition() *metav1.PartialObjectMetadata {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	return d
}

func (k *Watcher) signal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *Watcher) next() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// IsAbsent reports whether the kind has no definition.
func (k *Watcher) IsAbsent(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	_, state, err := k.find(ctx, gvk)
	return err == nil && state == absent, err
}

// While waits until the API server serves the kind, and calls run. The context of run ends when the definition is gone.
func (k *Watcher) While(ctx context.Context, gvk schema.GroupVersionKind, run func(context.Context) error) error {
	d, err := k.appear(ctx, gvk)
	if err != nil {
		return err
	}
	return k.during(ctx, d, run)
}

// defined identifies one definition; one that was removed and made again is
// another.
type defined struct {
	Name string
	uid  types.UID
}

// appear blocks until the kind is served. A definition that is being deleted is served too: its objects may wait for this
// operator to remove a finalizer, also when it was started after the deletion.
func (k *Watcher) appear(ctx context.Context, gvk schema.GroupVersionKind) (defined, error) {
	wait := establishing
	for {
		changed := k.next()
		d, state, err := k.find(ctx, gvk)
		if err != nil || state == served {
			return d, err
		}
		var again <-chan time.Time
		if state == accepted {
			again = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return defined{}, ctx.Err()
		case <-changed:
			wait = establishing
		case <-again:
			wait = min(2*wait, longest)
		}
	}
}

// vanish blocks until the definition is gone, or was replaced by another. One
// that is being deleted still exists: its objects may have a finalizer.
func (k *Watcher) vanish(ctx context.Context, d defined) {
	for {
		changed := k.next()
		found := definition()
		err := k.mgr.GetCache().Get(ctx, client.ObjectKey{Name: d.Name}, found)
		if client.IgnoreNotFound(err) == nil && found.GetUID() != d.uid {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// during runs something as long as the definition exists.
func (k *Watcher) during(ctx context.Context, d defined, run func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		k.vanish(ctx, d)
		stop()
	}()
	err := run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// state of a definition.
type state int

const (
	// absent means that there is no such definition.
	absent state = iota
	accepted
	served
)

// find returns the definition of the kind, and whether the API server serves it.
func (k *Watcher) find(ctx context.Context, gvk schema.GroupVersionKind) (defined, state, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(definition().GroupVersionKind())
	if err := k.mgr.GetCache().List(ctx, all); err != nil {
		return defined{}, absent, fmt.Errorf("cannot list custom resource definitions: %w", err)
	}
	best := absent
	for _, d := range all.Items {
		if !strings.HasSuffix(d.Name, "."+gvk.Group) {
			continue
		}
		best = accepted
		mapping, err := k.mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err == nil && d.Name == mapping.Resource.Resource+"."+gvk.Group {
			return defined{Name: d.Name, uid: d.UID}, served, nil
		}
		if err != nil && !meta.IsNoMatchError(err) {
			return defined{}, accepted, nil // the API server is away: ask again
		}
	}
	return defined{}, best, nil
}
