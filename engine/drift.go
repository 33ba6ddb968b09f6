package engine

import (
	"context"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
)

// applyAroundDrift provides around what others changed. What was provided before a restart is known
// from the revision. Passwords and certificates are excluded: the engine always repairs them.
func (e *engine[T, W]) applyAroundDrift(ctx context.Context, r *reconciliation[T, W], wanted, filled []lifecycle.Object) error {
	names, err := e.applier.Names(withoutCredentials(wanted))
	if err != nil {
		return err
	}
	before, err := e.revisions.AppliedObjects(ctx, r.obj)
	if err != nil {
		return err
	}
	r.Spared = names
	r.Changes, r.Drifts, err = e.applier.ApplyAround(ctx, r.obj, filled, before)
	return err
}

// isProvided reports whether the present spec has been provided. The status of a paused
// object is about a spec that was only looked at, so its newest revision decides.
func (e *engine[T, W]) isProvided(ctx context.Context, r *reconciliation[T, W]) bool {
	observedGeneration, conditions := r.obj.StatusFields()
	if *observedGeneration != r.obj.GetGeneration() {
		return false
	}
	if !apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionPaused) {
		return true
	}
	kept, err := e.revisions.HasCurrent(ctx, r.obj)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("it is not known whether the spec was provided before", "cause", err.Error())
	}
	return kept && err == nil
}

// withoutCredentials returns the wanted objects without the Secrets whose content is known only after they are filled in.
func withoutCredentials(wanted []lifecycle.Object) []lifecycle.Object {
	return slices.DeleteFunc(slices.Clone(wanted), func(obj lifecycle.Object) bool {
		_, certificate, _ := lifecycle.CertificateOf(obj)
		_, password, _ := lifecycle.PasswordOf(obj)
		return certificate || password
	})
}
