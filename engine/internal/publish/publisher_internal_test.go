package publish

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Five objects that never get well hold no other object back: they are Blocked, held, paused,
// at rest, or they mend something.
func TestOnlyAMovingObjectHoldsASlot(t *testing.T) {
	restart := lifecycle.Step{Name: "Restart", Class: lifecycle.ClassDisruptive}
	cases := map[string]struct {
		result Result
		keeps  bool
	}{
		"Waiting": {Result{Decision: lifecycle.WaitFor(restart, time.Time{})}, true},
		"Retry":   {Result{Decision: lifecycle.RetryIn(0, "X", "")}, true},
		"Blocked": {Result{Decision: lifecycle.Block("X", "")}, false},
		"Failed":  {Result{Decision: lifecycle.Fail("X", "")}, false},
		"Settled": {Result{Decision: lifecycle.First()}, false},
		"Paused":  {Result{Paused: true}, false},
		"Gate":    {Result{Refusals: []lifecycle.Refusal{{Gate: "KeepsQuorum"}}}, true},
		"Policy":  {Result{Refusals: []lifecycle.Refusal{{Policy: "nights"}}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := publisher(time.Unix(1000, 0))
			c.result.Key = types.NamespacedName{Namespace: "x", Name: "a"}
			other := budget.Claim{Holder: "other", Namespace: "y"}
			if p.Budget.Ask(budget.Claim{Holder: p.Holder(c.result.Key), Namespace: "x"}, func() {}) != nil {
				t.Fatal("there is a slot")
			}
			p.updateBudget(&c.result)
			if keeps := p.Budget.Ask(other, func() {}) != nil; keeps != c.keeps {
				t.Errorf("it keeps its slot: %v, want %v", keeps, c.keeps)
			}
		})
	}
}

// publisher is one whose API server and queue are empty, and where no policy selects an object.
func publisher(now time.Time) *Publisher {
	clock := func() time.Time { return now }
	c := enginetest.Builder().Build()
	policies := &enforce.Kind{GVK: enginetest.Kind, Store: &enforce.Store{}, Client: c, Live: c, Now: clock}
	return &Publisher{
		Gates: []string{"KeepsQuorum"}, Client: c, Recorder: &events{}, Tracker: readyourwrites.New(c, c, clock),
		History: historystore.New("app", "v1", c, c), Revisions: revision.NewStore("app", enginetest.Kind, nil, c, c),
		Policies: policies, Budget: budget.New(1, clock), Progress: metrics.NewProgress("publisher", clock), Now: clock,
		Backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](50*time.Millisecond, 30*time.Second),
		Holder:  types.NamespacedName.String, Wake: func(types.NamespacedName) {},
		Throttle: Throttle{
			Now: clock, IsBusy: func() bool { return false }, ReportsDrift: func(lifecycle.Resource) bool { return false },
		},
	}
}

// events has the notes of events.
type events struct {
	recorder.EventRecorder
	notes []string
}

func (e *events) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(note, args...))
}

// A result that took a step is in the status, in an event, in the history and in a revision; the next
// one, that says the same again, is written nowhere.
func TestPublish(t *testing.T) {
	now := time.Unix(1000, 0)
	p, obj := publisher(now), enginetest.New("a")
	c := enginetest.Builder(obj).WithStatusSubresource(obj).Build()
	p.Client, p.Tracker = c, readyourwrites.New(c, c, p.Now)
	step := lifecycle.Step{Name: "Restart", Target: "a-0", Reason: "Outdated", Message: "It is old."}
	views := Views{
		Ahead:    func() policy.RemainingPlan { t.Error("there are no approvals"); return policy.RemainingPlan{} },
		Evidence: func(s lifecycle.Step) []string { return []string{s.Target + " is old"} },
	}
	turn := func(d lifecycle.Decision, taken *Taken) reconcile.Result {
		key := client.ObjectKeyFromObject(obj)
		before := enginetest.New("a")
		if err := c.Get(t.Context(), key, before); err != nil {
			t.Fatal(err)
		}
		r := &Result{Key: key, Before: before, Object: before.DeepCopyObject().(lifecycle.Resource), Observed: true, Decided: true, Decision: d, Taken: taken, Began: now}
		r.Describe([]lifecycle.Condition{}, now)
		again, err := p.Publish(t.Context(), r, views)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	if again := turn(lifecycle.Proceed(step), &Taken{Step: step, Began: now}); again.RequeueAfter != BetweenSteps {
		t.Errorf("it is reconciled again after %s", again.RequeueAfter)
	}
	_, log, err := p.History.Open(t.Context(), obj)
	if err != nil || len(log.Entries) != 1 || !slices.Equal(log.Entries[0].Evidence, []string{"a-0 is old"}) {
		t.Errorf("the history is %+v, %v", log.Entries, err)
	}
	if revisions, err := p.Revisions.List(t.Context(), obj); err != nil || len(revisions) != 1 {
		t.Errorf("the revisions are %v, %v", revisions, err)
	}
	settled := lifecycle.First()
	turn(settled, nil)
	told := p.Recorder.(*events)
	if len(told.notes) != 2 || told.notes[0] != "It is old." {
		t.Errorf("the events are %q", told.notes)
	}
	written := enginetest.New("a")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), written); err != nil || len(written.Status.Conditions) == 0 {
		t.Errorf("the status is %+v, %v", written.Status, err)
	}
	version := written.ResourceVersion
	turn(settled, nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), written); err != nil || written.ResourceVersion != version || len(told.notes) != 2 {
		t.Errorf("the same is written again: %s, %q, %v", written.ResourceVersion, told.notes, err)
	}
}

// What is not known, or changes in this moment, is left to the next reconcile.
func TestApprovalsWaitForTheWorld(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		result Result
		asked  bool
	}{
		"Seen":     {Result{Observed: true}, true},
		"NotSeen":  {Result{}, false},
		"Panicked": {Result{Observed: true, Panicked: true}, false},
		"Acted":    {Result{Observed: true, Taken: &Taken{}}, false},
	} {
		p, asked := publisher(now), false
		p.Policies.Store.Approvals = oneApproval{}
		p.updateApprovals(t.Context(), &c.result, func() policy.RemainingPlan { asked = true; return policy.RemainingPlan{} })
		if asked != c.asked {
			t.Errorf("%s: the plan is asked for: %t", name, asked)
		}
	}
}

// oneApproval has an approval of whatever object.
type oneApproval struct{ enforce.Objects }

func (oneApproval) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.ApprovalList).Items = []v1alpha1.Approval{{}}
	return nil
}
