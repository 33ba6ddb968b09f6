package engine

import (
	"context"
	"fmt"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
)

// recoverPanic makes a panic in an application's code a decision about the one object that
// caused it. Other objects are not affected.
func (e *engine[T, W]) recoverPanic(ctx context.Context, r *reconciliation[T, W]) {
	thrown := recover()
	if thrown == nil {
		return
	}
	panics.WithLabelValues(e.app.Name).Inc()
	logf.FromContext(ctx).Error(fmt.Errorf("%v", thrown), "panic", "stack", string(debug.Stack()))
	r.panicked = true
	e.operator.budget.Release(e.holder(r.key))
	r.cause = fmt.Errorf("panic: %v", thrown)
	r.decision = bug(thrown)
}

func bug(thrown any) lifecycle.Decision {
	return lifecycle.Block("OperatorBug", fmt.Sprintf(
		"The operator's own rules failed on this object (%v). Other objects are not affected. "+
			"Please report it with the operator's log; changing the spec may avoid it.", thrown))
}
