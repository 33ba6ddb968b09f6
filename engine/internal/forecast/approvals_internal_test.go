package forecast

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/preview"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// growing is a planner with one step to take.
type growing struct {
	lifecycle.Planner[*enginetest.Object, struct{}]
}

func (growing) Next(want *enginetest.Object, _ struct{}, _ time.Time) lifecycle.Decision {
	if want.Status.ObservedGeneration > 0 {
		return lifecycle.Settled("AsDeclared", "")
	}
	return lifecycle.Proceed(lifecycle.Step{Name: "Grow", Class: lifecycle.ClassDisruptive})
}

func (growing) Effect(*enginetest.Object, struct{}, lifecycle.Step) (during, after struct{}) { return }
func (growing) Status(want *enginetest.Object, _ struct{})                                   { want.Status.ObservedGeneration = 1 }

// given are approvals as the cache has them.
type given struct {
	enforce.Objects
	all []v1alpha1.Approval
}

func (g given) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.ApprovalList).Items = g.all
	return nil
}

func approval(name, object string, valid time.Duration) v1alpha1.Approval {
	a := v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	a.Spec.TargetRef = v1alpha1.ApprovedObject{Group: enginetest.Kind.Group, Kind: enginetest.Kind.Kind, Name: object, UID: "u", Generation: 2}
	a.Spec.Steps = []v1alpha1.ApprovedStep{{Name: "Grow", Class: v1alpha1.ApprovedClass(lifecycle.ClassDisruptive)}}
	a.Spec.ExpirationTime = metav1.NewTime(noon.Add(valid))
	return a
}

// A preview promises no step that is held: where a policy wants another user than the author, the author's approval
// counts in no preview either.
func TestPreviewCountsNoApprovalOfTheAuthor(t *testing.T) {
	for user, counts := range map[string]bool{"ann": false, "bob": true} {
		given := approval("given", "f", time.Hour)
		given.Spec.Approver = user
		v := approved(given)
		rule := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "four-eyes"}, Spec: v1alpha1.OperationPolicySpec{
			Approval: &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Disruptive"}, Approver: v1alpha1.ApproverOtherUser},
		}}})
		v.Judge.Policies.Store.All.Store(&rule)
		obj := enginetest.New("f")
		obj.UID, obj.Generation = "u", 2
		obj.Annotations = map[string]string{lifecycle.AnnotationAuthor: "ann", lifecycle.AnnotationAuthorGeneration: "2"}
		step := growing{}.Next(enginetest.New("f"), struct{}{}, noon).Step
		held := v.Judge.Policies.Selecting(obj).Judge(v.Judge.Question(t.Context(), obj, struct{}{}, step)).Refusals
		if (len(held) == 0) != counts {
			t.Errorf("the step with the approval of %s: %v", user, held)
		}
		next := future[*enginetest.Object, struct{}]{want: obj}
		next.Steps = []preview.Step{{Step: step}}
		if plan := v.overseen(t.Context(), obj, next); (len(plan.Steps[0].Held) == 0) != counts {
			t.Errorf("the preview with the approval of %s: %v", user, plan.Steps[0].Held)
		}
	}
}

// approved is a view of the object f with its approvals.
func approved(all ...v1alpha1.Approval) *View[*enginetest.Object, struct{}] {
	c := enginetest.Builder().Build()
	now := func() time.Time { return noon }
	return &View[*enginetest.Object, struct{}]{Client: c, Judge: &hold.Judge[*enginetest.Object, struct{}]{
		Planner: growing{}, Now: now,
		Policies: &enforce.Kind{GVK: enginetest.Kind, Store: &enforce.Store{Approvals: given{all: all}}, Client: c, Live: c, Now: now},
		Specs: &specchange.Finder[*enginetest.Object]{
			Kind: enginetest.Kind, New: enginetest.NewObject,
			Revisions: revision.NewStore("app", enginetest.Kind, nil, c, c), History: historystore.New("app", "v1", c, c),
		},
	}}
}
