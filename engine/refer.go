package engine

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// refer notes the references of the object before the reconcile reads the objects themselves: a
// later change is then heard. A kind that cannot be watched does not stop the reconcile.
func (e *engine[T, W]) refer(ctx context.Context, r *reconciliation[T, W]) {
	if e.app.Abilities.References == nil {
		return
	}
	if err := e.references.Set(r.Key, e.app.Abilities.References(r.obj)); err != nil {
		logf.FromContext(ctx).Error(err, "changes of objects that it uses are not noticed at once")
	}
}
