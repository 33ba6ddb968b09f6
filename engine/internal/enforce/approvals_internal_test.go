package enforce

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// approvable has the approvals of an object f, and how often their status was written.
type approvable struct {
	*Kind
	refuse error
	writes int
}

// Await implements Objects.
func (a *approvable) Await(context.Context) {}

// List implements Objects.
func (a *approvable) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return a.Client.List(ctx, into, o...)
}

func withApprovals(t *testing.T, all ...client.Object) *approvable {
	t.Helper()
	a := &approvable{Kind: &Kind{GVK: enginetest.Kind, Store: &Store{}, Now: func() time.Time { return noon }}}
	a.Client = enginetest.Builder(all...).WithStatusSubresource(&v1alpha1.Approval{}).
		WithIndex(&v1alpha1.Approval{}, ApprovedIndex, func(obj client.Object) []string {
			ref := obj.(*v1alpha1.Approval).Spec.TargetRef
			return []string{ApprovedObject(schema.GroupKind{Group: ref.Group, Kind: ref.Kind}, ref.Name)}
		}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, o ...client.SubResourceUpdateOption) error {
			if a.writes++; a.refuse != nil {
				return a.refuse
			}
			return c.SubResource(sub).Update(ctx, obj, o...)
		}}).Build()
	a.Store.Approvals = a
	return a
}

func approval(name, object string, valid time.Duration) *v1alpha1.Approval {
	a := &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	a.Spec.TargetRef = v1alpha1.ApprovedObject{Group: enginetest.Kind.Group, Kind: enginetest.Kind.Kind, Name: object, UID: "u", Generation: 2}
	a.Spec.Steps = []v1alpha1.ApprovedStep{{Name: "Grow", Class: v1alpha1.ApprovedClass(lifecycle.ClassDisruptive)}}
	a.Spec.ExpirationTime = metav1.NewTime(noon.Add(valid))
	return a
}

// key is that of the object f.
var key = types.NamespacedName{Namespace: "ns", Name: "f"}

// remaining is what is left to do for the object f: one step.
func remaining() policy.RemainingPlan {
	return policy.RemainingPlan{
		Object: policy.Object{Group: enginetest.Kind.Group, Kind: enginetest.Kind.Kind, Namespace: "ns", Name: "f"}, UID: "u", Generation: 2,
		Steps: []lifecycle.Step{{Name: "Grow", Class: lifecycle.ClassDisruptive}},
	}
}

func (a *approvable) states(t *testing.T) map[string]string {
	t.Helper()
	list := &v1alpha1.ApprovalList{}
	if err := a.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, one := range list.Items {
		if c := apimeta.FindStatusCondition(one.Status.Conditions, policy.ConditionValid); c != nil {
			all[one.Name] = c.Reason
		}
	}
	return all
}

// The status of each approval of the object says whether it permits the steps now. The object is
// reconciled when the first valid one expires.
func TestApprovalsAreCertified(t *testing.T) {
	changed := approval("changed", "f", time.Hour)
	changed.Spec.TargetRef.Generation = 1
	leaving := approval("leaving", "f", time.Hour)
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.com/x"}, &metav1.Time{Time: noon}
	a := withApprovals(t, approval("long", "f", 2*time.Hour), approval("short", "f", time.Hour), approval("old", "f", -time.Hour),
		changed, leaving, approval("other", "g", time.Minute))
	expires := a.UpdateApprovals(t.Context(), key, remaining)
	want := map[string]string{"long": policy.ReasonApproved, "short": policy.ReasonApproved, "old": policy.ReasonExpired, "changed": policy.ReasonGenerationChanged}
	if diff := cmp.Diff(want, a.states(t)); diff != "" {
		t.Error(diff)
	}
	if !expires.Equal(noon.Add(time.Hour)) {
		t.Errorf("it is reconciled again at %s", expires)
	}
	before := a.writes
	if a.UpdateApprovals(t.Context(), key, remaining); a.writes != before {
		t.Errorf("%d writes say the same again", a.writes-before)
	}
}

// The approvals of an object that is gone are valid no more.
func TestApprovalsOfAnObjectThatIsGone(t *testing.T) {
	a := withApprovals(t, approval("a", "f", time.Hour), approval("other", "g", time.Hour))
	a.RevokeApprovals(t.Context(), key)
	if diff := cmp.Diff(map[string]string{"a": policy.ReasonObjectGone}, a.states(t)); diff != "" {
		t.Error(diff)
	}
}

// A refused write of an approval's status breaks nothing: a later reconcile writes it.
func TestApprovalStatusThatCannotBeWritten(t *testing.T) {
	for name, err := range map[string]error{
		"Conflict": apierrors.NewConflict(schema.GroupResource{Resource: "approvals"}, "a", errors.New("changed")),
		"NotFound": apierrors.NewNotFound(schema.GroupResource{Resource: "approvals"}, "a"),
		"Away":     errors.New("connection refused"),
	} {
		a := withApprovals(t, approval("a", "f", time.Hour))
		a.refuse = err
		expires := a.UpdateApprovals(t.Context(), key, remaining)
		if a.writes != 1 || expires.IsZero() {
			t.Errorf("%s: %d writes, and it is reconciled at %s", name, a.writes, expires)
		}
		a.refuse = nil
		a.UpdateApprovals(t.Context(), key, remaining)
		if diff := cmp.Diff(map[string]string{"a": policy.ReasonApproved}, a.states(t), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: afterwards %s", name, diff)
		}
	}
}

// Without the kind there are no approvals, and if they cannot be read none counts.
func TestApprovalsThatCannotBeRead(t *testing.T) {
	none := &Kind{GVK: enginetest.Kind, Store: &Store{}}
	if len(none.Approvals(t.Context(), key)) > 0 {
		t.Error("there are approvals without the kind")
	}
	a := withApprovals(t, approval("a", "f", time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Store.Approvals = unreadable{a}
	if all := a.Approvals(ctx, key); len(all) > 0 {
		t.Errorf("%v count", all)
	}
}

type unreadable struct{ Objects }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not filled")
}
