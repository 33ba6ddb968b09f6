package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// overseen is the plan with the policies that would hold its steps if they were to be
// taken now.
func (e *engine[T, W]) overseen(ctx context.Context, now T, next future[T, W]) preview.Plan {
	about, plan := e.selecting(next.want), next.Plan
	if len(about) == 0 {
		return plan
	}
	permit := e.foreseenPermit(ctx, now, next)
	plan.Steps = slices.Clone(plan.Steps)
	for i, s := range plan.Steps {
		if s.IsWait {
			continue
		}
		q := e.question(ctx, next.want, next.seen, s.Step)
		q.Permit = func() policy.ApprovalCheck { return permit(s.Step) }
		plan.Steps[i].Held = slices.Concat(s.Held, about.Judge(q).Refusals)
	}
	return plan
}

// foreseer unrolls the plan of want, in which repairs go before what policies hold now.
func (e *engine[T, W]) foreseer(ctx context.Context, now, want T) preview.Simulator[T, W] {
	subject := preview.Simulator[T, W]{Planner: e.app.Planner, Gates: e.app.Gates, Impact: e.app.Abilities.Impact}
	about := e.selecting(want)
	if len(about) == 0 {
		return subject
	}
	subject.Needed = func(want T, seen W, s lifecycle.Step) bool { return e.neededBefore(ctx, want, seen, s) }
	subject.Holds = func(want T, seen W, s lifecycle.Step) bool {
		q := e.question(ctx, want, seen, s)
		if !sameSpec(now, want) {
			q.Permit = func() policy.ApprovalCheck { return policy.ApprovalCheck{} }
		}
		return len(about.Judge(q).Refusals) > 0
	}
	subject.WithoutHeldChange = func(want T, seen W, s lifecycle.Step) lifecycle.Step {
		step, _ := e.withoutHeldChange(ctx, want, seen, s, sameSpec(now, want))
		return step
	}
	return subject
}

// foreseenPermit is what the approvals that there are say of a step of the plan. An
// approval of the object as it is says nothing of what it would be.
func (e *engine[T, W]) foreseenPermit(ctx context.Context, now T, next future[T, W]) func(lifecycle.Step) policy.ApprovalCheck {
	if !sameSpec(now, next.want) {
		return func(lifecycle.Step) policy.ApprovalCheck { return policy.ApprovalCheck{} }
	}
	approvals := e.approvals(ctx, client.ObjectKeyFromObject(now))
	ahead := policy.RemainingPlan{Object: e.subject(now), UID: string(now.GetUID()), Generation: now.GetGeneration()}
	for _, s := range next.Actions() {
		ahead.Steps = append(ahead.Steps, s.Step)
	}
	return func(s lifecycle.Step) policy.ApprovalCheck {
		return policy.ApprovalCheckOf(approvals, ahead, s, e.now())
	}
}

// sameSpec reports whether both declare the same.
func sameSpec(a, b runtime.Object) bool {
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

// holding names the policies that hold the first held step, in a sentence for the user who
// applies the object; empty if none does.
func holding(p preview.Plan) string {
	const limit = 256
	for _, s := range p.Steps {
		for _, r := range s.Held {
			if r.Policy == "" {
				continue
			}
			said := fmt.Sprintf("Governor will hold %s by %s: %s", s.Step, r.By(), r.Message)
			if len(said) > limit {
				said = said[:limit-3] + "…"
			}
			return said
		}
	}
	return ""
}
