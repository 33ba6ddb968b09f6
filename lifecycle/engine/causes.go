package engine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// causes knows what set off what is under way at each object. A planner sees the world
// and not what it was before: to bring back what a fault took, it changes members as if
// somebody had wished for it. It is kept in memory: in what a restart of the operator
// interrupts, the rest is told as the planner tells it.
type causes struct{ memo[lifecycle.Cause] }

// trace returns the decision with the cause that began it all. A change of the spec is
// the cause only of steps that repair nothing.
func (c *causes) trace(key types.NamespacedName, d lifecycle.Decision, repairs func(lifecycle.Step) bool) lifecycle.Decision {
	switch cause := d.Step.Cause; {
	case d.Outcome == lifecycle.Done:
		c.forget(key)
	case cause == lifecycle.SpecChange:
		// It may have to be read what the step repairs: that happens without the lock.
		if began, known := c.get(key); known && repairs(d.Step) {
			d.Step.Cause = began
		}
	case cause != "":
		c.put(key, cause)
	}
	return d
}
