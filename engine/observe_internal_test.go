package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
)

// unobservable is a driver whose calls return only when their context ends.
type unobservable struct{}

func (unobservable) Observe(ctx context.Context, _ *fake) (struct{}, error) {
	<-ctx.Done()
	return struct{}{}, ctx.Err()
}

func (unobservable) Act(ctx context.Context, _ *fake, _ struct{}, _ lifecycle.Step) error {
	<-ctx.Done()
	return ctx.Err()
}

// A driver that does not return blocks no worker: after the limit the application is unknown, which
// is no error, and the step is recorded, because it may have taken effect.
func TestDriverIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := testEngine(time.Now())
		e.driver, e.app.Timeout = unobservable{}, time.Minute
		r := &reconciliation[*fake, struct{}]{Result: publish.Result{Before: &fake{}, Object: &fake{}}, obj: &fake{}, actFor: &fake{}}
		began := time.Now()
		e.observe(t.Context(), r)
		if d := r.Decision; d.Reason != "CannotObserve" || d.Outcome != lifecycle.OutcomeRetry || r.Observed || r.Cause != nil {
			t.Errorf("Observe: %s, observed %v, cause %v", d, r.Observed, r.Cause)
		}
		r.Decision = lifecycle.Proceed(lifecycle.Step{Name: "StartMember"})
		e.act(t.Context(), r)
		if d := r.Decision; d.Reason != "StepTimedOut" || d.Step.Name != "StartMember" || r.Taken == nil || r.Cause != nil {
			t.Errorf("Act: %s, taken %v, cause %v", d, r.Taken, r.Cause)
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("both calls took %s", took)
		}
	})
}

// The end of the operator is no timeout.
func TestEndOfTheOperatorIsNoTimeout(t *testing.T) {
	e := testEngine(time.Now())
	e.driver, e.app.Timeout = unobservable{}, time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &reconciliation[*fake, struct{}]{Result: publish.Result{Object: &fake{}}, obj: &fake{}}
	if e.observe(ctx, r); r.Cause == nil {
		t.Errorf("%s without a cause", r.Decision)
	}
}
