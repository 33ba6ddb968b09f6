package memory

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// Causes knows what caused the present changes of each object. A planner sees the present world
// only: after a fault it adds members as if the spec had changed. The history has the cause of
// what an earlier operator left unfinished.
type Causes struct {
	Map[lifecycle.Cause]

	// unread is true for an object whose history may have the cause, and false once it was read.
	unread Map[bool]
}

// Meet records, at the first reconcile of an object, whether an earlier operator left something
// unfinished.
func (c *Causes) Meet(key types.NamespacedName, unfinished bool) {
	if _, known := c.unread.Get(key); !known {
		c.unread.Put(key, unfinished)
	}
}

// Trace returns the decision with the original cause. A change of the spec causes only steps that
// repair nothing. earlier reads the cause that an earlier operator recorded.
func (c *Causes) Trace(
	key types.NamespacedName, d lifecycle.Decision, repairs func(lifecycle.Step) bool, earlier func() lifecycle.Cause,
) lifecycle.Decision {
	switch cause := d.Step.Cause; {
	case d.Outcome == lifecycle.OutcomeSettled:
		c.Map.Forget(key)
		c.unread.Put(key, false)
	case cause == lifecycle.CauseSpecChange:
		// repairs may read the history, which happens without the lock.
		if began, known := c.began(key, earlier); known && repairs(d.Step) {
			d.Step.Cause = began
		}
	case cause != "":
		c.Put(key, cause)
	}
	return d
}

// began is what set off what is under way.
func (c *Causes) began(key types.NamespacedName, earlier func() lifecycle.Cause) (lifecycle.Cause, bool) {
	if unread, _ := c.unread.Get(key); unread {
		c.unread.Put(key, false)
		if _, known := c.Get(key); !known {
			if cause := earlier(); cause != "" && cause != lifecycle.CauseSpecChange {
				c.Put(key, cause)
			}
		}
	}
	return c.Get(key)
}

// Forget drops what is known of the object.
func (c *Causes) Forget(key types.NamespacedName) {
	c.Map.Forget(key)
	c.unread.Forget(key)
}
