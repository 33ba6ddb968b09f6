package engine

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle"
)

// blind is a driver that sees nothing until its caller gives up.
type blind struct{}

func (blind) Observe(ctx context.Context, _ *fake) (struct{}, error) {
	<-ctx.Done()
	return struct{}{}, ctx.Err()
}

func (blind) Act(context.Context, *fake, struct{}, lifecycle.Step) error { return nil }

// A warning that cannot be computed in time says so: silence would read as "nothing happens".
func TestWarningsDoNotVanish(t *testing.T) {
	e := testEngine(time.Now())
	e.driver, e.app.Holdable = blind{}, true
	f := &forecaster[*fake, struct{}]{}
	f.engine.Store(e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as if the time were over
	if diff := cmp.Diff([]string{stepsUnknown}, f.warn(ctx, nil, &fake{})); diff != "" {
		t.Errorf("an apply: %s", diff)
	}
	if diff := cmp.Diff([]string{deletionUnknown}, f.warnOfDeletion(ctx, &fake{}, false)); diff != "" {
		t.Errorf("a deletion: %s", diff)
	}
}
