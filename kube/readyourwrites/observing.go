package readyourwrites

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type observingKey struct{}

// ErrObserving is the error of a write while the world is observed.
var ErrObserving = errors.New("a driver must not write while it observes: what changes the world is a step")

// WithoutWrites returns a context in which a tracking client refuses every write except a dry
// run. A preview observes, too, and must change nothing.
func WithoutWrites(ctx context.Context) context.Context {
	return context.WithValue(ctx, observingKey{}, true)
}

// mayWrite returns an error if the context forbids a write with these dry-run options.
func mayWrite(ctx context.Context, dryRun []string) error {
	if ctx.Value(observingKey{}) != nil && len(dryRun) == 0 {
		return ErrObserving
	}
	return nil
}

// Status implements client.Client.
func (c *trackingClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.Client.
func (c *trackingClient) SubResource(name string) client.SubResourceClient {
	return subresource{c.Client.SubResource(name)}
}

// subresource refuses writes as the client does.
type subresource struct{ client.SubResourceClient }

// Create implements client.SubResourceClient.
func (s subresource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	if err := mayWrite(ctx, (&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	return s.SubResourceClient.Create(ctx, obj, sub, opts...)
}

// Update implements client.SubResourceClient.
func (s subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := mayWrite(ctx, (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	return s.SubResourceClient.Update(ctx, obj, opts...)
}

// Patch implements client.SubResourceClient.
func (s subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := mayWrite(ctx, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun); err != nil {
		return err
	}
	return s.SubResourceClient.Patch(ctx, obj, patch, opts...)
}

// Apply implements client.SubResourceClient.
func (s subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if err := mayWrite(ctx, (&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun); err != nil {
		return err
	}
	return s.SubResourceClient.Apply(ctx, obj, opts...)
}
