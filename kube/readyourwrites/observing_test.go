package readyourwrites_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/kube/readyourwrites"
)

// Observe, which also runs for a preview, changes nothing: every way to write is refused, and a dry run is not.
func TestNothingIsWrittenWhileObserving(t *testing.T) {
	pod := func() *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name = "ns", "p"
		return p
	}
	merge := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	configuration := corev1apply.Pod("p", "ns").WithLabels(map[string]string{"a": "b"})
	writes := map[string]func(ctx context.Context, c client.Client) error{
		"Create": func(ctx context.Context, c client.Client) error { p := pod(); p.Name = "q"; return c.Create(ctx, p) },
		"Update": func(ctx context.Context, c client.Client) error { return c.Update(ctx, pod()) },
		"Patch":  func(ctx context.Context, c client.Client) error { return c.Patch(ctx, pod(), merge) },
		"Apply": func(ctx context.Context, c client.Client) error {
			return c.Apply(ctx, configuration, client.FieldOwner("x"))
		},
		"Delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, pod()) },
		"DeleteAllOf": func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, pod(), client.InNamespace("ns"))
		},
		"StatusUpdate": func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, pod()) },
		"StatusPatch":  func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, pod(), merge) },
		"StatusApply": func(ctx context.Context, c client.Client) error {
			return c.Status().Apply(ctx, configuration, client.FieldOwner("x"))
		},
		"Evict": func(ctx context.Context, c client.Client) error {
			return c.SubResource("eviction").Create(ctx, pod(), &policyv1.Eviction{})
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			base := fake.NewClientBuilder().WithObjects(pod()).WithStatusSubresource(&corev1.Pod{}).Build()
			c := readyourwrites.New(base, base, time.Now).Client("app", base)
			if err := write(readyourwrites.WithoutWrites(t.Context()), c); !errors.Is(err, readyourwrites.ErrObserving) {
				t.Errorf("while it observes: %v", err)
			}
			if err := write(t.Context(), c); errors.Is(err, readyourwrites.ErrObserving) {
				t.Errorf("in a step: %v", err)
			}
		})
	}
	base := fake.NewClientBuilder().Build()
	c := readyourwrites.New(base, base, time.Now).Client("app", base)
	if err := c.Create(readyourwrites.WithoutWrites(t.Context()), pod(), client.DryRunAll); err != nil {
		t.Errorf("a dry run: %v", err)
	}
}
