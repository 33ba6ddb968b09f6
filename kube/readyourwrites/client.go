package readyourwrites

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

type ownerKey struct{}

// For returns a context in which writes through a tracking client count as made
// for the owner.
func For(ctx context.Context, owner types.NamespacedName) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Client returns a client that remembers every write in the tracker, so that a
// driver reads its own writes without thinking of it. What it creates gets the
// labels by which the engine watches and assigns it.
func (t *Tracker) Client(app string, c client.Client) client.Client {
	return &tracking{Client: c, tracker: t, app: app}
}

type tracking struct {
	client.Client
	tracker *Tracker
	app     string
}

func (c *tracking) wrote(ctx context.Context, obj client.Object, err error) error {
	if owner, ok := ctx.Value(ownerKey{}).(types.NamespacedName); ok && err == nil {
		c.tracker.Wrote(owner, obj)
	}
	return err
}

// Create implements client.Client.
func (c *tracking) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if owner, ok := ctx.Value(ownerKey{}).(types.NamespacedName); ok {
		labels := map[string]string{lifecycle.LabelApp: c.app, lifecycle.LabelInstance: owner.Name}
		for k, v := range obj.GetLabels() {
			if _, ours := labels[k]; !ours {
				labels[k] = v
			}
		}
		obj.SetLabels(labels)
	}
	err := c.Client.Create(ctx, obj, opts...)
	if o := (client.CreateOptions{}); len(o.ApplyOptions(opts).DryRun) > 0 {
		return err // nothing that a cache could show
	}
	return c.wrote(ctx, obj, err)
}

// Update implements client.Client.
func (c *tracking) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.changed(ctx, obj, c.Client.Update(ctx, obj, opts...))
}

// Patch implements client.Client.
func (c *tracking) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.changed(ctx, obj, c.Client.Patch(ctx, obj, patch, opts...))
}

// changed remembers a change of what the cache shows. Without the application's label,
// as the API server returned it, an object is in no cache, and nobody waits for it.
func (c *tracking) changed(ctx context.Context, obj client.Object, err error) error {
	if obj.GetLabels()[lifecycle.LabelApp] != c.app {
		return err
	}
	return c.wrote(ctx, obj, err)
}

// Apply implements client.Client. What the API server returned is remembered as the
// kind that the cache has, not as what it was applied from.
func (c *tracking) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.Client.Apply(ctx, obj, opts...); err != nil {
		return err
	}
	applied, ok := obj.(client.Object)
	if !ok {
		return nil
	}
	blank, err := c.Scheme().New(applied.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil //nolint:nilerr // a kind without a Go type is in no cache
	}
	written := blank.(client.Object)
	written.SetNamespace(applied.GetNamespace())
	written.SetName(applied.GetName())
	written.SetUID(applied.GetUID())
	written.SetResourceVersion(applied.GetResourceVersion())
	return c.wrote(ctx, written, nil)
}

// Delete implements client.Client.
func (c *tracking) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := c.Client.Delete(ctx, obj, opts...)
	if owner, ok := ctx.Value(ownerKey{}).(types.NamespacedName); ok && err == nil {
		c.tracker.Deleted(owner, obj)
	}
	return err
}
