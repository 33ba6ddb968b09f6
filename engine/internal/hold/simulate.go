package hold

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// Simulator unrolls plans for the object.
func (j *Judge[T, W]) Simulator(want T) preview.Simulator[T, W] {
	return preview.Simulator[T, W]{
		Planner: j.Planner, Gates: j.Gates, Impact: j.Abilities.Impact, ReportsDrift: j.Policies.ReportsDrift(want) && !deleting(want),
	}
}

// Foreseer unrolls the plan of want, in which repairs go before what policies hold now.
func (j *Judge[T, W]) Foreseer(ctx context.Context, now, want T) preview.Simulator[T, W] {
	subject := j.Simulator(want)
	about := j.Policies.Selecting(want)
	if len(about) == 0 {
		return subject
	}
	subject.Needed = func(want T, seen W, s lifecycle.Step) bool { return j.NeededBefore(ctx, want, seen, s) }
	subject.Holds = func(want T, seen W, s lifecycle.Step) bool {
		q := j.Question(ctx, want, seen, s)
		if !SameSpec(now, want) {
			q.Permit = func() policy.ApprovalCheck { return policy.ApprovalCheck{} }
		}
		return len(about.Judge(q).Refusals) > 0
	}
	subject.WithoutHeldChange = func(want T, seen W, s lifecycle.Step) (lifecycle.Step, []lifecycle.Refusal) {
		foreseen := func(T) (W, error) { return seen, nil }
		use, _ := j.WithoutHeldChange(ctx, StandIn[T, W]{Step: s, Want: want, Seen: seen}, SameSpec(now, want), foreseen)
		return use.Step, use.Refusals
	}
	return subject
}

// SameSpec reports whether both declare the same.
func SameSpec(a, b runtime.Object) bool {
	return reflect.DeepEqual(declaration(a), declaration(b))
}

func declaration(obj runtime.Object) map[string]any {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	delete(all, "metadata")
	delete(all, "status")
	return all
}
