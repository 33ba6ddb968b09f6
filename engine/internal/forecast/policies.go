package forecast

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// overseen is the plan with the policies that would hold its steps if they were to be
// taken now.
func (v *View[T, W]) overseen(ctx context.Context, now T, next future[T, W]) preview.Plan {
	about, plan := v.Judge.Policies.Selecting(next.want), next.Plan
	if len(about) == 0 {
		return plan
	}
	permit := v.foreseenPermit(ctx, now, next)
	plan.Steps = slices.Clone(plan.Steps)
	for i, s := range plan.Steps {
		if s.IsWait {
			continue
		}
		q := v.Judge.Question(ctx, next.want, next.seen, s.Step)
		q.Permit = func() policy.ApprovalCheck { return permit(s.Step) }
		plan.Steps[i].Held = slices.Concat(s.Held, about.Judge(q).Refusals)
	}
	return plan
}

// foreseenPermit is what the approvals that there are say of a step of the plan. An
// approval of the object as it is says nothing of what it would be.
func (v *View[T, W]) foreseenPermit(ctx context.Context, now T, next future[T, W]) func(lifecycle.Step) policy.ApprovalCheck {
	if !hold.SameSpec(now, next.want) {
		return func(lifecycle.Step) policy.ApprovalCheck { return policy.ApprovalCheck{} }
	}
	approvals := v.Judge.Policies.Approvals(ctx, client.ObjectKeyFromObject(now))
	ahead := v.Judge.Policies.Remaining(now, v.Judge.Policies.Selecting(next.want), next.Plan)
	return func(s lifecycle.Step) policy.ApprovalCheck {
		return policy.ApprovalCheckOf(approvals, ahead, s, v.Judge.Now())
	}
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
