package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
)

// causes knows what set off what is under way at each object. A planner sees the world
// and not what it was before: to bring back what a fault took, it changes members as if
// somebody had wished for it. It is kept in memory: in what a restart of the operator
// interrupts, the rest is told as the planner tells it.
type causes struct{ memo[lifecycle.Cause] }

// trace returns the decision with the cause that began it all. A change of the spec is
// none where the spec has been fulfilled before.
func (c *causes) trace(key types.NamespacedName, d lifecycle.Decision, fulfilled func() bool) lifecycle.Decision {
	switch cause := d.Step.Cause; {
	case d.Outcome == lifecycle.Done:
		c.forget(key)
	case cause == lifecycle.SpecChange:
		// What was fulfilled may have to be read: nobody else is to wait for that.
		if began, known := c.get(key); known && fulfilled() {
			d.Step.Cause = began
		}
	case cause != "":
		c.put(key, cause)
	}
	return d
}

// fulfilled reports whether everything has been as the present spec declares. A deletion
// is a wish that never has been.
func (e *engine[T, W]) fulfilled(ctx context.Context, obj T) bool {
	if leaving(obj) {
		return false
	}
	was, err := e.revisions.Settled(ctx, obj)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("it is not known whether the spec was fulfilled before", "cause", err.Error())
	}
	return was && err == nil
}
