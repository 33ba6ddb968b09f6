package engine

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// startNeedsAll is of an application whose steps with the name Start need every object.
var startNeedsAll = lifecycle.Abilities[*fake, string]{
	DependsOn: func(_ *fake, s lifecycle.Step, _ string, _ lifecycle.Object) bool { return s.Name == "Start" },
}

// While an object cannot be provided, repairs that do not need it go on, and the decision is about that object otherwise.
func TestRepairsContinueDespiteBlockedObject(t *testing.T) {
	step := func(name string, intent lifecycle.Intent, class lifecycle.Class) lifecycle.Decision {
		return lifecycle.Proceed(lifecycle.Step{Name: name, Intent: intent, Class: class, Reason: name})
	}
	remove := step("Remove", lifecycle.IntentRepair, lifecycle.ClassDestructive)
	restart := step("Restart", lifecycle.IntentChange, lifecycle.ClassDisruptive)
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "Ready", Reason: "Starting"}, time.Time{})
	cases := map[string]struct {
		reason string
		next   lifecycle.Decision
		want   string
		again  time.Duration
	}{
		"Repair":  {"a repair goes on", remove, "Remove", 0},
		"Behind":  {"also behind a wish", lifecycle.First(restart, remove), "Remove", 0},
		"Needs":   {"not one that needs the object", step("Start", lifecycle.IntentRepair, lifecycle.ClassRoutine), "NameTaken", 0},
		"Wish":    {"nor a wish", restart, "NameTaken", 0},
		"Wait":    {"a wait is looked at as usual", wait.Heartbeat(time.Second), "NameTaken", time.Second},
		"Forever": {"unless it is woken", wait, "NameTaken", 0},
		"Settled": {"the rest is as declared", lifecycle.First(), "NameTaken", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			e := engineOf(now, fakeKind, App[*fake, string]{Planner: idle{}, Abilities: startNeedsAll})
			r := &reconciliation[*fake, string]{Result: publish.Result{Object: &fake{}}, obj: &fake{}}
			e.applyFailed(r, &apply.Failure{Object: &corev1.Service{}, Kind: "Service", Err: &apply.ForeignError{Kind: "Service", Name: "x"}})
			d, decided := e.repairDespiteBlocked(t.Context(), r, c.next)
			if d.Reason != c.want || decided != (c.want != "NameTaken") {
				t.Errorf("%s: got %s, want %s", c.reason, d, c.want)
			}
			if r.Again.IsZero() != (c.again == 0) || c.again > 0 && r.Again.Sub(now) != c.again {
				t.Errorf("it is looked at again at %s", r.Again)
			}
		})
	}
}

// An outage, or a planner that does not know what its steps need, ends the turn.
func TestOtherErrorsEndTheTurn(t *testing.T) {
	stuck := &apply.Failure{Object: &corev1.Service{}, Kind: "Service", Err: &apply.ForeignError{Kind: "Service", Name: "x"}}
	for name, c := range map[string]struct {
		abilities lifecycle.Abilities[*fake, string]
		err       error
	}{
		"Outage": {startNeedsAll, errors.New("connection refused")}, "Unknowing": {lifecycle.Abilities[*fake, string]{}, stuck},
	} {
		e := engineOf(time.Unix(1000, 0), fakeKind, App[*fake, string]{Planner: idle{}, Abilities: c.abilities})
		r := &reconciliation[*fake, string]{Result: publish.Result{Object: &fake{}}, obj: &fake{}}
		if e.applyFailed(r, c.err); r.Blocked != nil || !r.Decision.IsSet() {
			t.Errorf("%s: the turn goes on", name)
		}
	}
}
