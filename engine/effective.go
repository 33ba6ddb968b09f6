package engine

import (
	"context"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// rollsBack are the policies that put the last spec that worked back when one of the
// object has failed; none if it halts.
func (e *engine[T, W]) rollsBack(obj lifecycle.Object) []string {
	if p := e.policy(obj); p.OnFailure == v1alpha1.FailurePolicyRollback {
		return p.OnFailureBy
	}
	return nil
}

// maintained is the context for the driver: it knows the nodes that policies of the
// object name as being in maintenance.
func (e *engine[T, W]) maintained(ctx context.Context, obj lifecycle.Object) context.Context {
	return lifecycle.WithMaintenance(ctx, e.selecting(obj).Maintenance())
}

// reportsDrift reports whether a policy leaves what others change of the object.
func (e *engine[T, W]) reportsDrift(obj lifecycle.Object) bool {
	return e.policy(obj).Drift == v1alpha1.DriftPolicyReport
}
