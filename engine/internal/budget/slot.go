package budget

import (
	"github.com/governor-dev/governor/lifecycle"
)

// TakesSlot reports whether the step takes a slot. A repair does not, and neither does
// the deletion of an object: it ends the object and keeps no client of it waiting.
func TakesSlot(obj lifecycle.Object, s lifecycle.Step) bool {
	return s.Class.IsDisruptive() && s.Intent != lifecycle.IntentRepair && obj.GetDeletionTimestamp() == nil
}
