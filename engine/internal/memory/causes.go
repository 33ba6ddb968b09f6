package memory

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// Causes knows what set off what is under way at each object. A planner sees the world
// and not what it was before: to bring back what a fault took, it changes members as if
// somebody had wished for it. What an earlier operator left unfinished is read from the history.
type Causes struct {
	Map[lifecycle.Cause]

	// unread has an entry for each object that was seen, which is true while its history may still tell the cause.
	unread Map[bool]
}

// Meet notes, when an object is seen first, whether an earlier operator left something unfinished at it.
func (c *Causes) Meet(key types.NamespacedName, unfinished bool) {
	if _, known := c.unread.Get(key); !known {
		c.unread.Put(key, unfinished)
	}
}

// Trace returns the decision with the cause that began it all. A change of the spec is
// the cause only of steps that repair nothing. earlier reads the cause that an earlier operator recorded.
func (c *Causes) Trace(
	key types.NamespacedName, d lifecycle.Decision, repairs func(lifecycle.Step) bool, earlier func() lifecycle.Cause,
) lifecycle.Decision {
	switch cause := d.Step.Cause; {
	case d.Outcome == lifecycle.OutcomeSettled:
		c.Map.Forget(key)
		c.unread.Put(key, false)
	case cause == lifecycle.CauseSpecChange:
		// It may have to be read what the step repairs: that happens without the lock.
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
