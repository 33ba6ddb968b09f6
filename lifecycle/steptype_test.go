package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

type growArgs struct {
	Size   int64  `json:"size"`
	Medium string `json:"medium,omitempty"`
}

func TestArgsOfAStep(t *testing.T) {
	cases := map[string]struct {
		args map[string]string
		want growArgs
		err  string
	}{
		"All":      {map[string]string{"size": "7", "medium": "disk"}, growArgs{7, "disk"}, ""},
		"Optional": {map[string]string{"size": "7"}, growArgs{Size: 7}, ""},
		"Zero":     {map[string]string{"size": "0"}, growArgs{}, ""},
		"None":     {nil, growArgs{}, "the argument size is missing"},
		"Word":     {map[string]string{"size": "many"}, growArgs{}, `the argument size is "many": `},
		"Empty":    {map[string]string{"size": ""}, growArgs{}, "invalid syntax"},
		"Unknown":  {map[string]string{"size": "7", "speed": "1"}, growArgs{}, "some of the arguments map[size:7 speed:1] are unknown"},
		"Unusual":  {map[string]string{"size": "-0"}, growArgs{}, `the argument size is "-0", and its usual form is "0"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := lifecycle.ArgsOf[growArgs](lifecycle.Step{Args: c.args})
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err == nil && got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if again := (lifecycle.Step{}).WithArgs(got); err == nil && !cmp.Equal(again.Args, c.args) {
				t.Errorf("written they are %v", again.Args)
			}
		})
	}
}

func TestStepTypesAreChecked(t *testing.T) {
	type number struct {
		Size float64 `json:"size"`
	}
	cases := map[string]struct {
		types []lifecycle.StepType
		want  string
	}{
		"Good":    {[]lifecycle.StepType{{Name: "Grow", Args: growArgs{}}, {Name: "Grown", Wait: true}}, ""},
		"Unnamed": {[]lifecycle.StepType{{}}, `step "": the name must be one word`},
		"Twice":   {[]lifecycle.StepType{{Name: "Grow"}, {Name: "Grow", Wait: true}}, `step "Grow": it is declared twice`},
		"Class":   {[]lifecycle.StepType{{Name: "Grow", Class: "Nice"}}, `the class "Nice" is unknown`},
		"Number":  {[]lifecycle.StepType{{Name: "Grow", Args: number{}}}, "the field Size needs a name for JSON and a type that is text"},
		"NoType":  {[]lifecycle.StepType{{Name: "Grow", Args: map[string]string{}}}, "it is no struct"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := lifecycle.CheckStepTypes(c.types); err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// decided is a planner that decides what it is given.
type decided struct {
	lifecycle.NoConditions[*strictObject, int]
	next lifecycle.Decision
}

type strictObject struct{ corev1.ConfigMap }

func (*strictObject) StatusFields() (*int64, *[]metav1.Condition) { return nil, nil }

func (decided) Resources(*strictObject, int) ([]lifecycle.Object, error) { return nil, nil }
func (d decided) Next(*strictObject, int, time.Time) lifecycle.Decision  { return d.next }
func (decided) Effect(_ *strictObject, seen int, _ lifecycle.Step) (during, after int) {
	return seen, seen
}
func (decided) Status(*strictObject, int) {}

// The engine takes no step that is not declared: no gate, policy or driver knows what it does.
func TestStrictRefusesWhatIsNotDeclared(t *testing.T) {
	types := []lifecycle.StepType{
		{Name: "Grow", Class: lifecycle.ClassDisruptive, Args: growArgs{}}, {Name: "Rest"}, {Name: "Grown", Wait: true},
	}
	grow := lifecycle.Step{Name: "Grow", Class: lifecycle.ClassDisruptive}.WithArgs(growArgs{Size: 1})
	worse := grow
	worse.Class = lifecycle.ClassDestructive
	rest := lifecycle.Step{Name: "Rest"}
	cases := map[string]struct {
		next lifecycle.Decision
		want string
	}{
		"Declared":   {lifecycle.Proceed(grow), ""},
		"Awaited":    {lifecycle.WaitFor(lifecycle.Step{Name: "Grown"}, time.Time{}), ""},
		"Blocked":    {lifecycle.Block("Why", "So."), ""},
		"Settled":    {lifecycle.First(), ""},
		"Undeclared": {lifecycle.Proceed(lifecycle.Step{Name: "Melt", Target: "x"}), "the step Melt x, which they may not take: no such step is declared"},
		"NoArgs":     {lifecycle.Proceed(lifecycle.Step{Name: "Grow"}), "the argument size is missing"},
		"OddArgs":    {lifecycle.Proceed(rest.WithArgs(growArgs{})), "it has no arguments, and got map[size:0]"},
		"Worse":      {lifecycle.Proceed(worse), "its class is Destructive, and the declared one is Disruptive"},
		"WaitsFor":   {lifecycle.WaitFor(rest, time.Time{}), "declared as a step, and waited for"},
		"TakesAWait": {lifecycle.Proceed(lifecycle.Step{Name: "Grown"}), "declared as a wait"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.Strict(decided{next: c.next}, types).Next(nil, 0, time.Time{})
			if c.want == "" && !cmp.Equal(got, c.next) {
				t.Errorf("it is %s", got)
			}
			if c.want != "" && (got.Reason != lifecycle.ReasonInvalidStep || got.Outcome != lifecycle.OutcomeBlocked || !strings.Contains(got.Message, c.want)) {
				t.Errorf("it is %s, want %q", got, c.want)
			}
		})
	}
}

// No repair goes on behind a step that is not declared, nor behind one that comes later.
func TestStrictChecksWhatIsBehind(t *testing.T) {
	repair := func(name string) lifecycle.Decision {
		return lifecycle.Proceed(lifecycle.Step{Name: name, Intent: lifecycle.IntentRepair})
	}
	next := lifecycle.First(repair("Rest"), repair("Melt"), repair("Rest"))
	got := lifecycle.Strict(decided{next: next}, []lifecycle.StepType{{Name: "Rest"}}).Next(nil, 0, time.Time{})
	if got.Outcome != lifecycle.OutcomeProceed || len(got.Behind) != 1 || got.Behind[0].Reason != lifecycle.ReasonInvalidStep {
		t.Errorf("it is %s, and behind it %v", got, got.Behind)
	}
	if len(next.Behind) != 2 || next.Behind[0].Outcome != lifecycle.OutcomeProceed {
		t.Error("the planner's own decision was changed")
	}
}
