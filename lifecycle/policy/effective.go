package policy

import (
	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// Effective is what all policies that select an object say together beyond its steps:
// of each field the strictest that any of them asks for, and who asks for it.
type Effective struct {
	// Names are those of all policies that select the object, sorted.
	Names []string
	// PausedBy are the policies that pause it; it is paused if there are any.
	PausedBy []string
	// Drift is what happens to what others change: Report if any policy says so, or
	// else Repair.
	Drift v1alpha1.DriftPolicy
	// DriftBy are the policies that say so; none if it is the default.
	DriftBy []string
	// OnFailure is what happens when a change fails: Rollback if a policy says so and
	// none says Halt, which is the default.
	OnFailure v1alpha1.FailurePolicy
	// OnFailureBy are the policies that say so; none if it is the default.
	OnFailureBy []string
}

// Paused reports whether any policy pauses the object.
func (e Effective) Paused() bool { return len(e.PausedBy) > 0 }

// Effective returns what the policies, all of which select one object, say together.
func (s Set) Effective() Effective {
	e := Effective{Names: s.Names(), Drift: v1alpha1.DriftPolicyRepair, OnFailure: v1alpha1.FailurePolicyHalt}
	e.PausedBy = s.where(func(p *Policy) bool { return p.spec.Paused })
	drift := func(rule v1alpha1.DriftPolicy) []string {
		return s.where(func(p *Policy) bool { return p.spec.DriftPolicy == rule })
	}
	failure := func(rule v1alpha1.FailurePolicy) []string {
		return s.where(func(p *Policy) bool { return p.spec.OnFailure == rule })
	}
	if e.DriftBy = drift(v1alpha1.DriftPolicyReport); len(e.DriftBy) > 0 {
		e.Drift = v1alpha1.DriftPolicyReport
	} else {
		e.DriftBy = drift(v1alpha1.DriftPolicyRepair)
	}
	if e.OnFailureBy = failure(v1alpha1.FailurePolicyHalt); len(e.OnFailureBy) > 0 {
		return e
	}
	if e.OnFailureBy = failure(v1alpha1.FailurePolicyRollback); len(e.OnFailureBy) > 0 {
		e.OnFailure = v1alpha1.FailurePolicyRollback
	}
	return e
}
