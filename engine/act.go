package engine

import (
	"context"
	"errors"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
)

func (e *engine[T, W]) act(ctx context.Context, r *reconciliation[T, W]) {
	if r.Decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	step, log := r.Decision.Step, logf.FromContext(ctx)
	if r.Said().Reason == explain.Deferred {
		log = log.V(1) // it is tried again and again, and was said once
	}
	log.Info("step", "step", step.String(), "class", step.Class, "reason", step.Reason)
	ctx, cancel := e.limited(ctx, r.obj)
	defer cancel()
	began := e.now()
	r.Taken = &publish.Taken{Step: step, Began: began}
	r.Taken.Err = e.driver.Act(ctx, r.actFor, r.decidedIn(), step)
	r.Taken.Took = e.now().Sub(began)
	switch {
	case r.Taken.Err == nil:
	case errors.Is(context.Cause(ctx), errTimeout):
		r.StepTimedOut(step, e.app.Timeout)
	default:
		r.StepFailed(step)
	}
	e.noteAttempt(r)
}
