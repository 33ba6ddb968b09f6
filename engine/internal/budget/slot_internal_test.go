package budget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/lifecycle"
)

func TestRepairsAndDeletionsNeedNoSlot(t *testing.T) {
	going := enginetest.New("a")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	cases := map[string]struct {
		obj  *enginetest.Object
		step lifecycle.Step
		want bool
	}{
		"Wish":     {enginetest.New("a"), lifecycle.Step{Class: lifecycle.ClassDisruptive}, true},
		"Repair":   {enginetest.New("a"), lifecycle.Step{Class: lifecycle.ClassDestructive, Intent: lifecycle.IntentRepair}, false},
		"Routine":  {enginetest.New("a"), lifecycle.Step{Class: lifecycle.ClassRoutine}, false},
		"Deletion": {going, lifecycle.Step{Class: lifecycle.ClassIrreversible}, false},
	}
	for name, c := range cases {
		if got := TakesSlot(c.obj, c.step); got != c.want {
			t.Errorf("%s: asks for a slot: %v, want %v", name, got, c.want)
		}
	}
}

// Repairs and deletions take no slot of the budget. Steps that disturb no client take none either.
func TestWhatTakesASlot(t *testing.T) {
	going := enginetest.New("a")
	going.DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		obj    *enginetest.Object
		class  lifecycle.Class
		intent lifecycle.Intent
		want   bool
	}{
		"Change":   {enginetest.New("a"), lifecycle.ClassDisruptive, lifecycle.IntentChange, true},
		"Removal":  {enginetest.New("a"), lifecycle.ClassDestructive, "", true},
		"Routine":  {enginetest.New("a"), lifecycle.ClassRoutine, lifecycle.IntentChange, false},
		"Repair":   {enginetest.New("a"), lifecycle.ClassDestructive, lifecycle.IntentRepair, false},
		"Deletion": {going, lifecycle.ClassIrreversible, lifecycle.IntentChange, false},
	} {
		if got := TakesSlot(c.obj, lifecycle.Step{Class: c.class, Intent: c.intent}); got != c.want {
			t.Errorf("%s: asks for a slot: %t", name, got)
		}
	}
}
