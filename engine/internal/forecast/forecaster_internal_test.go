package forecast

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/lifecycle"
)

// blind is a driver that sees nothing until its caller gives up.
type blind struct{}

func (blind) Observe(ctx context.Context, _ *enginetest.Object) (struct{}, error) {
	<-ctx.Done()
	return struct{}{}, ctx.Err()
}

func (blind) Act(context.Context, *enginetest.Object, struct{}, lifecycle.Step) error { return nil }

// A warning that cannot be computed in time says so: silence would read as "nothing happens".
func TestWarningsDoNotVanish(t *testing.T) {
	f := &Forecaster[*enginetest.Object, struct{}]{Holdable: true}
	now := time.Now
	policies := &enforce.Kind{GVK: enginetest.Kind, Store: &enforce.Store{}, Now: now}
	end := f.Begin(&View[*enginetest.Object, struct{}]{Judge: &hold.Judge[*enginetest.Object, struct{}]{Policies: policies, Now: now}, Driver: blind{}})
	defer end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as if the time were over
	if diff := cmp.Diff([]string{StepsUnknown}, f.Warn(ctx, nil, enginetest.New("a"))); diff != "" {
		t.Errorf("an apply: %s", diff)
	}
	if diff := cmp.Diff([]string{DeletionUnknown}, f.WarnOfDeletion(ctx, enginetest.New("a"), false)); diff != "" {
		t.Errorf("a deletion: %s", diff)
	}
}

// A preview asks the API server about the pods of the proposed object, and of none that is deleted.
func TestPreviewTriesTheTemplate(t *testing.T) {
	v := &View[*enginetest.Object, string]{}
	want := enginetest.New("proposed")
	if got := v.tryTemplate(t.Context(), want, "seen"); got != "seen" {
		t.Errorf("without the ability it is %q", got)
	}
	v.TryTemplate = func(_ context.Context, _ client.Client, want *enginetest.Object, seen string) string {
		return seen + " with " + want.Name
	}
	if got := v.tryTemplate(t.Context(), want, "seen"); got != "seen with proposed" {
		t.Errorf("it is %q", got)
	}
	want.DeletionTimestamp = &metav1.Time{}
	if got := v.tryTemplate(t.Context(), want, "seen"); got != "seen" {
		t.Errorf("for a deletion it is %q", got)
	}
}

// A replica that has just started says that it does not know yet.
func TestWarningsOfAReplicaThatStarts(t *testing.T) {
	asks := enginetest.New("a")
	asks.Annotations = map[string]string{lifecycle.AnnotationPreview: "Update"}
	cases := map[string]struct {
		reason   string
		holdable bool
		want     *enginetest.Object
		applied  []string
		deleted  []string
	}{
		"Holdable": {"a change and a deletion need an answer", true, enginetest.New("a"), []string{StepsUnknown}, []string{DeletionUnknown}},
		"Other":    {"a deletion without steps has no warning", false, enginetest.New("a"), []string{StepsUnknown}, nil},
		"Preview":  {"the preview itself says it", false, asks, nil, nil},
	}
	for name, c := range cases {
		f := &Forecaster[*enginetest.Object, struct{}]{Holdable: c.holdable}
		if diff := cmp.Diff(c.applied, f.Warn(t.Context(), nil, c.want)); diff != "" {
			t.Errorf("%s: %s: an apply: %s", name, c.reason, diff)
		}
		if diff := cmp.Diff(c.deleted, f.WarnOfDeletion(t.Context(), c.want, false)); diff != "" {
			t.Errorf("%s: %s: a deletion: %s", name, c.reason, diff)
		}
	}
}
