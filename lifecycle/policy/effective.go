package policy

import (
	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// Effective combines the fields of all policies that select an object, except those about
// steps: the strictest value of each field, and the policies that set it.
type Effective struct {
	// Names are the names of all policies that select the object, sorted.
	Names []string
	// PausedBy are the policies that pause the object.
	PausedBy []string
	// Drift is Report if any policy has it, otherwise Repair.
	Drift v1alpha1.DriftPolicy
	// DriftBy are the policies that set Drift; empty for the default.
	DriftBy []string
	// OnFailure is Rollback if a policy has it and none has Halt, the default.
	OnFailure v1alpha1.FailurePolicy
	// OnFailureBy are the policies that set OnFailure; empty for the default.
	OnFailureBy []string
}

// Paused reports whether any policy pauses the object.
func (e Effective) Paused() bool { return len(e.PausedBy) > 0 }

// Effective combines the policies, all of which select one object.
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
