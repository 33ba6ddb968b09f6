package engine

import (
	"context"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// causes knows what set off what is under way at each object. A planner sees the world
// and not what it was before: to bring back what a fault took, it changes members as if
// somebody had wished for it. What an earlier operator left unfinished is read from the history.
type causes struct {
	objectMap[lifecycle.Cause]

	// unread has an entry for each object that was seen, which is true while its history may still tell the cause.
	unread objectMap[bool]
}

// meet notes, when an object is seen first, whether an earlier operator left something unfinished at it.
func (c *causes) meet(key types.NamespacedName, unfinished bool) {
	if _, known := c.unread.get(key); !known {
		c.unread.put(key, unfinished)
	}
}

// trace returns the decision with the cause that began it all. A change of the spec is
// the cause only of steps that repair nothing. earlier reads the cause that an earlier operator recorded.
func (c *causes) trace(
	key types.NamespacedName, d lifecycle.Decision, repairs func(lifecycle.Step) bool, earlier func() lifecycle.Cause,
) lifecycle.Decision {
	switch cause := d.Step.Cause; {
	case d.Outcome == lifecycle.OutcomeSettled:
		c.objectMap.forget(key)
		c.unread.put(key, false)
	case cause == lifecycle.CauseSpecChange:
		// It may have to be read what the step repairs: that happens without the lock.
		if began, known := c.began(key, earlier); known && repairs(d.Step) {
			d.Step.Cause = began
		}
	case cause != "":
		c.put(key, cause)
	}
	return d
}

// began is what set off what is under way.
func (c *causes) began(key types.NamespacedName, earlier func() lifecycle.Cause) (lifecycle.Cause, bool) {
	if unread, _ := c.unread.get(key); unread {
		c.unread.put(key, false)
		if _, known := c.get(key); !known {
			if cause := earlier(); cause != "" && cause != lifecycle.CauseSpecChange {
				c.put(key, cause)
			}
		}
	}
	return c.get(key)
}

func (c *causes) forget(key types.NamespacedName) {
	c.objectMap.forget(key)
	c.unread.forget(key)
}

// unfinished reports whether the object's status says that something is under way or waits for a person.
func unfinished(obj lifecycle.Resource) bool {
	_, conditions := obj.StatusFields()
	return apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionReconciling) || apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionStalled)
}

// recorded is the cause of the last step that was taken, by the history; empty if it cannot be read.
func (e *engine[T, W]) recorded(ctx context.Context, obj T) lifecycle.Cause {
	_, book, err := e.history.open(ctx, obj)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("what began before this operator is not known", "cause", err.Error())
		return ""
	}
	for _, entry := range slices.Backward(book.Entries) {
		if entry.Result != history.Refused {
			return entry.Step.Cause
		}
	}
	return ""
}
