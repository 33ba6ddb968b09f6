package hold

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// restorer is a planner that repairs a drift that may stay, and then grows.
type restorer struct {
	lifecycle.Planner[*enginetest.Object, struct{}]
}

func (restorer) Next(*enginetest.Object, struct{}, time.Time) lifecycle.Decision {
	repair := lifecycle.Proceed(lifecycle.Step{Name: "Restore", Intent: lifecycle.IntentRepair, Cause: lifecycle.CauseDrift})
	repair.Drift = &lifecycle.Drift{Kind: "StatefulSet", Name: "f-0", Fields: []string{"spec.x"}}
	return lifecycle.First(repair, lifecycle.Proceed(lifecycle.Step{Name: "Grow"}))
}

// With driftPolicy Report, drift that may stay is reported, and all other steps go on.
func TestDriftThatMayStayIsReported(t *testing.T) {
	drift := []apply.Drift{{Kind: "StatefulSet", Name: "f-0", Fields: []string{"spec.x"}}}
	going := enginetest.New("a")
	going.DeletionTimestamp = &metav1.Time{}
	cases := map[string]struct {
		reason string
		policy v1alpha1.DriftPolicy
		obj    *enginetest.Object
		step   string
		drifts []apply.Drift
	}{
		"Report":  {"it stays", v1alpha1.DriftPolicyReport, enginetest.New("a"), "Grow", drift},
		"Repair":  {"it is repaired", v1alpha1.DriftPolicyRepair, enginetest.New("a"), "Restore", nil},
		"Deleted": {"a deletion is not about drift", v1alpha1.DriftPolicyReport, going, "Restore", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := judge[struct{}](restorer{})
			set := policy.NewSet([]v1alpha1.OperationPolicy{{Spec: v1alpha1.OperationPolicySpec{DriftPolicy: c.policy}}})
			j.Policies.Store.All.Store(&set)
			d, drifts := j.Next(c.obj, struct{}{})
			if diff := cmp.Diff(c.drifts, drifts); diff != "" || d.Step.Name != c.step {
				t.Errorf("%s: it takes %s; %s", c.reason, d.Step.Name, diff)
			}
		})
	}
}

// judge judges by the planner, without policies, revisions and histories.
func judge[W any](p lifecycle.Planner[*enginetest.Object, W]) *Judge[*enginetest.Object, W] {
	c := enginetest.Builder().Build()
	now := func() time.Time { return time.Unix(1000, 0) }
	return &Judge[*enginetest.Object, W]{
		Planner:  p,
		Policies: &enforce.Kind{GVK: enginetest.Kind, Store: &enforce.Store{}, Client: c, Live: c, Now: now}, Now: now,
		Specs: &specchange.Finder[*enginetest.Object]{
			Kind: enginetest.Kind, New: enginetest.NewObject,
			Revisions: revision.NewStore("app", enginetest.Kind, nil, c, c), History: historystore.New("app", "v1", c, c),
		},
	}
}

// Each way to pause an object is named, and how to end it.
func TestPause(t *testing.T) {
	j, obj := judge[struct{}](restorer{}), enginetest.New("a")
	if j.IsPaused(obj) {
		t.Error("nothing pauses it")
	}
	obj.Annotations = map[string]string{lifecycle.AnnotationPaused: "true"}
	if why := j.WhyPaused(obj); !j.IsPaused(obj) || !strings.Contains(why, "Remove spec.paused or the annotation "+lifecycle.AnnotationPaused+" to resume.") {
		t.Errorf("by the annotation: %q", why)
	}
	set := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: v1alpha1.OperationPolicySpec{Paused: true}}})
	j.Policies.Store.All.Store(&set)
	if obj.Annotations = nil; !j.IsPaused(obj) || !strings.Contains(j.WhyPaused(obj), "sale") {
		t.Errorf("by the policy: %q", j.WhyPaused(obj))
	}
}

// A freeze holds the change of a spec that has worked, and not the same step of a spec that is the first.
func TestQuestion(t *testing.T) {
	j, obj := judge[struct{}](restorer{}), enginetest.New("a")
	set := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}}}})
	j.Policies.Store.All.Store(&set)
	step := lifecycle.Step{Name: "Restart", Class: lifecycle.ClassDisruptive, Cause: lifecycle.CauseSpecChange}
	held := func() bool {
		return len(j.Policies.Selecting(obj).Judge(j.Question(t.Context(), obj, struct{}{}, step)).Refusals) > 0
	}
	obj.Spec.From = "old"
	if _, err := j.Specs.Revisions.Save(t.Context(), obj, "ann", true); err != nil {
		t.Fatal(err)
	}
	obj.Spec.From, obj.Generation = "new", 2
	if !held() {
		t.Error("the freeze holds no change")
	}
	if step.Intent = lifecycle.IntentRepair; held() {
		t.Error("the freeze holds a repair")
	}
}
