package engine

import (
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// rollsBack are the policies that put the last spec that worked back when one of the
// object has failed; none if it halts.
func (e *engine[T, W]) rollsBack(obj lifecycle.Object) []string {
	if p := e.policy(obj); p.OnFailure == v1alpha1.FailureRollback {
		return p.OnFailureBy
	}
	return nil
}

// reportsDrift reports whether a policy leaves what others change of the object.
func (e *engine[T, W]) reportsDrift(obj lifecycle.Object) bool {
	return e.policy(obj).Drift == v1alpha1.DriftReport
}
