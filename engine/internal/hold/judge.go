// Package hold decides whether gates and policies hold a step, and what is done instead. It reads and
// changes nothing, so reconciles and previews ask the same questions.
package hold

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Judge answers for the objects of one application. It is safe for concurrent use.
type Judge[T lifecycle.Resource, W any] struct {
	Planner   lifecycle.Planner[T, W]
	Gates     []lifecycle.Gate[T, W]
	Abilities lifecycle.Abilities[T, W]
	Policies  *enforce.Kind
	Specs     *specchange.Finder[T]
	Now       func() time.Time
}

// Next is the planner's decision. While the drift policy is Report, it leaves out the repairs of
// drift that may stay, and returns that drift.
func (j *Judge[T, W]) Next(want T, seen W) (lifecycle.Decision, []apply.Drift) {
	d := j.Planner.Next(want, seen, j.Now())
	if !j.Policies.ReportsDrift(want) || deleting(want) {
		return d, nil
	}
	return SpareDrift(d)
}

// SpareDrift leaves out the repairs of drift that may stay, and returns that drift.
func SpareDrift(d lifecycle.Decision) (_ lifecycle.Decision, all []apply.Drift) {
	d, spared := d.SpareDrift()
	for _, s := range spared {
		all = append(all, apply.Drift{Kind: s.Kind, Name: s.Name, Fields: s.Fields})
	}
	return d, all
}

// Objections are those of the application's gates to the step.
func (j *Judge[T, W]) Objections(want T, seen W, step lifecycle.Step) []lifecycle.Refusal {
	during, _ := j.Planner.Effect(want, seen, step)
	return lifecycle.Judge(j.Gates, want, seen, during, step)
}

// Question is what the policies are asked about a step of the object.
func (j *Judge[T, W]) Question(ctx context.Context, obj T, seen W, step lifecycle.Step) policy.Question {
	return policy.Question{
		Object: j.Policies.Subject(obj), Step: step, Now: j.Now(), Deletion: deleting(obj),
		Bypass: strings.TrimSpace(obj.GetAnnotations()[lifecycle.AnnotationBypass]), Author: lifecycle.AuthorOf(obj), Generation: obj.GetGeneration(),
		Permit: func() policy.ApprovalCheck {
			return policy.ApprovalCheckOf(j.Policies.Approvals(ctx, client.ObjectKeyFromObject(obj)), j.Remaining(obj, seen), step, j.Now())
		},
		FromSpec:             func() bool { return j.OriginOf(ctx, obj, seen, step) == specchange.FromChange },
		NamespaceTerminating: func() bool { return deleting(obj) && j.Policies.NamespaceTerminates(ctx, obj.GetNamespace()) },
		Peers:                func() ([]policy.Peer, error) { return j.Policies.Store.Peers(ctx) },
	}
}

// Remaining is what is left to do for the object in the world.
func (j *Judge[T, W]) Remaining(obj T, seen W) policy.RemainingPlan {
	subject := j.Simulator(obj)
	plan, _, _ := subject.Unroll(obj, seen, j.Now())
	return j.Policies.Remaining(obj, j.Policies.Selecting(obj), plan)
}

func deleting(obj lifecycle.Object) bool { return obj.GetDeletionTimestamp() != nil }
