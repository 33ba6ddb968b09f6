package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
)

// faults is a planner of what is broken, in the order of urgency, and the driver that repairs it. A
// name with an exclamation mark is a change.
type faults struct {
	lifecycle.Planner[*fake, struct{}]
	broken  []string
	refuse  map[string]error
	vain    string // the step that has no effect
	taken   []string
	waiting lifecycle.Decision // after all steps
}

func (f *faults) Next(*fake, struct{}, time.Time) lifecycle.Decision {
	var rules []lifecycle.Decision
	for _, name := range f.broken {
		s := lifecycle.Step{Name: strings.TrimSuffix(name, "!"), Reason: "Broken", Message: name + " is broken.", Intent: lifecycle.IntentRepair}
		if s.Name != name {
			s.Intent, s.Class = lifecycle.IntentChange, lifecycle.ClassDisruptive
		}
		rules = append(rules, lifecycle.Proceed(s).Heartbeat(10*time.Second))
	}
	return lifecycle.First(append(rules, f.waiting)...)
}

func (f *faults) Effect(_ *fake, seen struct{}, _ lifecycle.Step) (during, after struct{}) {
	return seen, seen
}

func (f *faults) Observe(context.Context, *fake) (struct{}, error) { return struct{}{}, nil }

func (f *faults) Act(_ context.Context, _ *fake, _ struct{}, s lifecycle.Step) error {
	f.taken = append(f.taken, s.Name)
	if err := f.refuse[s.Name]; err != nil || s.Name == f.vain {
		return err
	}
	f.broken = slices.DeleteFunc(f.broken, func(name string) bool { return name == s.Name })
	return nil
}

// turns takes turns for as long as is given, each when the engine asks for it, and returns the last result.
func (f *faults) turns(t *testing.T, obj *fake, during time.Duration) (last *publish.Result, number int) {
	t.Helper()
	now := time.Unix(1000, 0)
	e := testEngine(now)
	e.app.Planner, e.driver = f, f
	e.assemble()
	e.operator.options.Now = func() time.Time { return now }
	for end := now.Add(during); now.Before(end); number++ {
		r := newReconciliation[*fake, struct{}](obj.DeepCopyObject().(*fake), "", now)
		r.Observed = true
		e.decide(t.Context(), r)
		e.gate(t.Context(), r)
		if r.Taken == nil {
			e.act(t.Context(), r)
		}
		r.Describe(nil, now)
		obj, last = r.obj, &r.Result
		after := e.publisher.Requeue(&r.Result).RequeueAfter
		if after == 0 {
			return last, number
		}
		now = now.Add(after)
	}
	return last, number
}

func (f *faults) times(name string) (n int) {
	for _, taken := range f.taken {
		if taken == name {
			n++
		}
	}
	return n
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "f-0", errors.New("a policy says no"))

// While a step comes to nothing, later repairs go on, changes do not, and it is tried ever more rarely.
func TestRepairsGoOnPastAStuckStep(t *testing.T) {
	cases := map[string]struct {
		reason string
		faults faults
		want   string // the reason of Ready
		once   []string
		never  string
	}{
		"Refused":  {"the API server refuses it", faults{broken: []string{"Label", "Replace"}, refuse: map[string]error{"Label": errForbidden}}, "Forbidden", []string{"Replace"}, ""},
		"Fails":    {"it fails again and again", faults{broken: []string{"Label", "Replace"}, refuse: map[string]error{"Label": errors.New("no route")}}, "StepFailed", []string{"Replace"}, ""},
		"NoEffect": {"it has no effect", faults{broken: []string{"Label", "Replace"}, vain: "Label"}, "StepHasNoEffect", []string{"Replace"}, ""},
		"Change":   {"a change does not go on", faults{broken: []string{"Label", "Grow!", "Replace"}, vain: "Label"}, "StepHasNoEffect", []string{"Replace"}, "Grow"},
		"Several":  {"two steps are stuck", faults{broken: []string{"Label", "Mend", "Replace"}, vain: "Mend", refuse: map[string]error{"Label": errForbidden}}, "Forbidden", []string{"Replace"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, turns := c.faults.turns(t, &fake{}, time.Hour)
			for _, step := range c.once {
				if n := c.faults.times(step); n != 1 {
					t.Errorf("%s, and %s was taken %d times: %q", c.reason, step, n, c.faults.taken)
				}
			}
			if n := c.faults.times("Label"); n < 12 || n > 130 {
				t.Errorf("it was tried %d times in an hour", n)
			}
			if c.never != "" && c.faults.times(c.never) > 0 {
				t.Errorf("%s was taken", c.never)
			}
			if beats := int(time.Hour / (10 * time.Second)); turns > beats+3*len(c.faults.taken) {
				t.Errorf("%d turns in an hour, for %d attempts", turns, len(c.faults.taken))
			}
			said := conditionsOf(r)
			if diff := cmp.Diff(map[string]string{
				lifecycle.ConditionReady: "False " + c.want, lifecycle.ConditionResourcesBlocked: "True " + c.want,
			}, map[string]string{lifecycle.ConditionReady: said[lifecycle.ConditionReady], lifecycle.ConditionResourcesBlocked: said[lifecycle.ConditionResourcesBlocked]}); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(r.Decision.Message, "The step Label ") {
				t.Errorf("it says %s", r.Decision)
			}
		})
	}
}

func conditionsOf(r *publish.Result) map[string]string {
	_, conditions := r.Object.StatusFields()
	said := map[string]string{}
	for _, c := range *conditions {
		said[c.Type] = string(c.Status) + " " + c.Reason
	}
	return said
}

// A stuck step is gone from the status when the world no longer wants it.
func TestStuckStepEnds(t *testing.T) {
	f := faults{broken: []string{"Label", "Replace"}, refuse: map[string]error{"Label": errForbidden}}
	r, _ := f.turns(t, &fake{}, time.Minute)
	f.refuse = nil
	r, _ = f.turns(t, r.Object.(*fake), time.Hour)
	want := map[string]string{lifecycle.ConditionReady: "True AsDeclared", lifecycle.ConditionReconciling: "False AsDeclared", lifecycle.ConditionStalled: "False AsDeclared"}
	if diff := cmp.Diff(want, conditionsOf(r)); diff != "" {
		t.Error(diff)
	}
}

// A change of the object tries the step at once: a person may have corrected it.
func TestChangedObjectTriesAStuckStep(t *testing.T) {
	e := testEngine(time.Unix(1000, 0))
	f := &faults{broken: []string{"Label"}, refuse: map[string]error{"Label": errForbidden}}
	e.app.Planner, e.driver = f, f
	e.assemble()
	for i, c := range []struct {
		generation int64
		tried      int
	}{{1, 1}, {1, 1}, {2, 2}, {2, 2}} {
		r := newReconciliation[*fake, struct{}](&fake{ObjectMeta: metav1.ObjectMeta{Generation: c.generation}}, "", e.now())
		e.decide(t.Context(), r)
		e.gate(t.Context(), r)
		if e.act(t.Context(), r); f.times("Label") != c.tried {
			t.Errorf("turn %d: tried %d times, want %d", i, f.times("Label"), c.tried)
		}
	}
	e.objectState.release(types.NamespacedName{})
	if _, known := e.stuck.Get(types.NamespacedName{}); known {
		t.Error("a released object is remembered")
	}
}

// The wait behind a stuck step is observed as if it were the decision.
func TestWaitBehindAStuckStepIsObserved(t *testing.T) {
	now := time.Unix(1000, 0)
	wait := lifecycle.WaitFor(lifecycle.Step{Name: "Ready", Reason: "Starting"}, now)
	for name, c := range map[string]struct {
		wait lifecycle.Decision
		want time.Duration
	}{
		"Heartbeat": {wait.Heartbeat(200 * time.Millisecond), 200 * time.Millisecond},
		"Deadline":  {wait.Until(now.Add(300 * time.Millisecond)), 300 * time.Millisecond},
		"Watched":   {wait, time.Second},
		"None":      {lifecycle.Decision{}, time.Second},
	} {
		e := testEngine(now)
		f := &faults{broken: []string{"Label"}, refuse: map[string]error{"Label": errForbidden}, waiting: c.wait}
		e.app.Planner, e.driver = f, f
		e.assemble()
		var after time.Duration
		for range 2 {
			r := newReconciliation[*fake, struct{}](&fake{}, "", now)
			e.decide(t.Context(), r)
			e.gate(t.Context(), r)
			e.act(t.Context(), r)
			after = e.publisher.Requeue(&r.Result).RequeueAfter
		}
		if after != c.want {
			t.Errorf("%s: it is observed after %s, want %s", name, after, c.want)
		}
	}
}

// One event says that a step is stuck, however often it is tried, and whatever goes on meanwhile.
func TestStuckStepIsOneEvent(t *testing.T) {
	for name, f := range map[string]*faults{
		"Refused":  {broken: []string{"Label", "Replace"}, refuse: map[string]error{"Label": errForbidden}},
		"NoEffect": {broken: []string{"Label", "Replace"}, vain: "Label"},
	} {
		now := time.Unix(1000, 0)
		e := testEngine(now)
		e.app.Planner, e.driver = f, f
		e.assemble()
		e.operator.options.Now = func() time.Time { return now }
		obj, warned := &fake{}, 0
		for range 100 {
			r := newReconciliation[*fake, struct{}](obj, "", now)
			r.Observed = true
			e.decide(t.Context(), r)
			e.gate(t.Context(), r)
			e.act(t.Context(), r)
			r.Describe(nil, now)
			if a := r.Event(); a.Kind == "Warning" && strings.Contains(a.Note, "The step Label") {
				warned++
			}
			obj, now = r.obj, now.Add(e.publisher.Requeue(&r.Result).RequeueAfter)
		}
		if warned != 1 || f.times("Replace") != 1 {
			t.Errorf("%s: %d warnings, %q", name, warned, f.taken)
		}
	}
}
