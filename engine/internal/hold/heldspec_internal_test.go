package hold

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// starter starts what was lost from the spec, except from the spec "waits".
type starter struct {
	lifecycle.Planner[*enginetest.Object, string]
}

func (starter) Effect(_ *enginetest.Object, seen string, s lifecycle.Step) (during, after string) {
	return s.Name, seen
}

func (starter) Next(want *enginetest.Object, _ string, _ time.Time) lifecycle.Decision {
	if want.Spec.From == "waits" {
		return lifecycle.First()
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: "Start", Target: "a-0", Intent: lifecycle.IntentRepair, Class: lifecycle.ClassDisruptive, Args: map[string]string{"from": want.Spec.From},
	})
}

// frozen judges an object whose former spec has worked, while a policy holds its present one.
func frozen(t *testing.T, worked string) (*Judge[*enginetest.Object, string], *enginetest.Object) {
	t.Helper()
	j, obj := judge[string](starter{}), enginetest.New("a")
	j.Abilities.AppliesChange = func(*enginetest.Object, string, lifecycle.Step) bool { return true }
	set := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}}}})
	j.Policies.Store.All.Store(&set)
	obj.Spec.From = worked
	if _, err := j.Specs.Revisions.Save(t.Context(), obj, "ann", true); err != nil {
		t.Fatal(err)
	}
	obj.Spec.From, obj.Generation = "new", 2
	return j, obj
}

// A repair uses the spec that worked last, in the world of that spec. Where that spec needs no repair, the change is held.
func TestWithoutHeldChange(t *testing.T) {
	for worked, want := range map[string]string{"old": "old", "waits": ""} {
		j, obj := frozen(t, worked)
		given := StandIn[*enginetest.Object, string]{Step: starter{}.Next(obj, "", time.Time{}).Step, Want: obj}
		use, err := j.WithoutHeldChange(t.Context(), given, true, func(want *enginetest.Object) (string, error) { return "of " + want.Spec.From, nil })
		if err != nil {
			t.Fatal(err)
		}
		if held := len(use.Refusals) > 0; held != (want == "") {
			t.Errorf("%s: the refusals are %v", worked, use.Refusals)
		}
		if want != "" && (use.Step.Args["from"] != want || use.Seen != "of old" || !strings.Contains(use.Step.Message, "the spec of revision 1")) {
			t.Errorf("%s: it takes %v in the world %q: %s", worked, use.Step.Args, use.Seen, use.Step.Message)
		}
	}
	j, obj := frozen(t, "old")
	given := StandIn[*enginetest.Object, string]{Step: starter{}.Next(obj, "", time.Time{}).Step, Want: obj}
	if _, err := j.WithoutHeldChange(t.Context(), given, true, func(*enginetest.Object) (string, error) { return "", errors.New("away") }); err == nil {
		t.Error("the world is not known, and it acts")
	}
}

// A repair that does not need the blocked objects goes on.
func TestDespiteBlocked(t *testing.T) {
	b := &Blocked{Objects: []*apply.Failure{{Kind: "Service"}}, Decision: lifecycle.Block("NameTaken", "")}
	for name, needs := range map[string]bool{"NameTaken": true, "Broken": false} {
		j := judge[string](starter{})
		j.Abilities.DependsOn = func(*enginetest.Object, lifecycle.Step, string, lifecycle.Object) bool { return needs }
		repair := lifecycle.Proceed(lifecycle.Step{Name: "Start", Intent: lifecycle.IntentRepair, Reason: "Broken"})
		d, goesOn := j.DespiteBlocked(t.Context(), enginetest.New("a"), "", repair, b)
		if d.Reason != name || goesOn == needs {
			t.Errorf("it needs the Service: %t, and the decision is %s", needs, d)
		}
	}
}
