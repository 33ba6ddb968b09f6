package engine

import (
	"context"
	"fmt"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/metrics"
)

// recoverPanic makes a panic in an application's code a decision about the one object that
// caused it. Other objects are not affected.
func (e *engine[T, W]) recoverPanic(ctx context.Context, r *reconciliation[T, W]) {
	thrown := recover()
	if thrown == nil {
		return
	}
	metrics.Panics.WithLabelValues(e.app.Name).Inc()
	logf.FromContext(ctx).Error(fmt.Errorf("%v", thrown), "panic", "stack", string(debug.Stack()))
	r.Panicked = true
	e.operator.budget.Release(e.holder(r.Key))
	r.Cause = fmt.Errorf("panic: %v", thrown)
	r.Decision = explain.Panic(thrown)
}
