package engine

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
)

func (e *engine[T, W]) act(ctx context.Context, r *reconciliation[T, W]) {
	if r.decision.Outcome != lifecycle.OutcomeProceed {
		return
	}
	step, log := r.decision.Step, logf.FromContext(ctx)
	if r.said().Reason == postponed {
		log = log.V(1) // it is tried again and again, and was said once
	}
	log.Info("step", "step", step.String(), "class", step.Class, "reason", step.Reason)
	began := e.now()
	r.taken = &stepResult{step: step, began: began}
	r.taken.err = e.driver.Act(e.maintained(ctx, r.obj), r.actFor, r.seen, step)
	r.taken.took = e.now().Sub(began)
	if r.taken.err != nil {
		r.failed(step)
	}
}
