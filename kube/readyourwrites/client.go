package readyourwrites

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

type ownerKey struct{}

// WithOwner returns a context in which a tracking client attributes its writes to the owner.
func WithOwner(ctx context.Context, owner types.NamespacedName) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Client returns a client that records every write in the tracker, so that a driver reads
// its own writes. Objects that it creates get the labels by which the engine watches them
// and maps them to their owner.
func (t *Tracker) Client(app string, c client.Client) client.Client {
	return &trackingClient{Client: c, tracker: t, app: app}
}

type trackingClient struct {
	client.Client
	tracker *Tracker
	app     string
}

func (c *trackingClient) wrote(ctx context.Context, obj client.Object, err error) error {
	if owner, ok := ctx.Value(ownerKey{}).(types.NamespacedName); ok && err == nil {
		c.tracker.Wrote(owner, obj)
	}
	return err
}

// Create implements client.Client.
func (c *trackingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	if err := mayWrite(ctx, o.DryRun); err != nil {
		return err
	}
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
	if len(o.DryRun) > 0 {
		return err // a dry run creates nothing that a cache could show
	}
	return c.wrote(ctx, obj, err)
}

// Update implements client.Client.
func (c *trackingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := mayWrite(ctx, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	return c.changed(ctx, obj, c.Client.Update(ctx, obj, opts...))
}

// Patch implements client.Client.
func (c *trackingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := mayWrite(ctx, (&client.PatchOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	return c.changed(ctx, obj, c.Client.Patch(ctx, obj, patch, opts...))
}

// changed records a change of an object that the cache shows. The API server's answer
// decides: without the application's label an object is in no cache, and nothing must wait
// for it.
func (c *trackingClient) changed(ctx context.Context, obj client.Object, err error) error {
	if obj.GetLabels()[lifecycle.LabelApp] != c.app {
		return err
	}
	return c.wrote(ctx, obj, err)
}

// Apply implements client.Client. It records the object under its Go type in the cache,
// not under the type of the apply configuration.
func (c *trackingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	dryRun := (&client.ApplyOptions{}).ApplyOptions(opts).DryRun
	if err := mayWrite(ctx, dryRun); err != nil {
		return err
	}
	if err := c.Client.Apply(ctx, obj, opts...); err != nil {
		return err
	}
	applied, ok := obj.(client.Object)
	if !ok || len(dryRun) > 0 {
		return nil
	}
	kind := applied.GetObjectKind().GroupVersionKind()
	written := inForm(&unstructured.Unstructured{}, kind)
	if typed, err := c.Scheme().New(kind); err == nil {
		written = typed.(client.Object)
	}
	written.SetNamespace(applied.GetNamespace())
	written.SetName(applied.GetName())
	written.SetUID(applied.GetUID())
	written.SetResourceVersion(applied.GetResourceVersion())
	return c.wrote(ctx, written, nil)
}

// Delete implements client.Client.
func (c *trackingClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := mayWrite(ctx, (&client.DeleteOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	err := c.Client.Delete(ctx, obj, opts...)
	if owner, ok := ctx.Value(ownerKey{}).(types.NamespacedName); ok && err == nil {
		c.tracker.Deleted(owner, obj)
	}
	return err
}

// DeleteAllOf implements client.Client.
func (c *trackingClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := mayWrite(ctx, (&client.DeleteAllOfOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	return c.Client.DeleteAllOf(ctx, obj, opts...)
}
