package envtest_test

import (
	"errors"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/test/fakeapp"
)

// ringCRD returns the CRD of rings, which tests create and delete at run time.
func ringCRD() *apiextensionsv1.CustomResourceDefinition {
	open := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "rings." + fakeapp.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: fakeapp.GroupVersion.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "rings", Singular: "ring", Kind: "Ring", ListKind: "RingList",
				Categories: []string{"governor"},
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: fakeapp.GroupVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &open,
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": ringSpec()},
				}},
			}},
		},
	}
}

// ringSpec has validation only for the field that can only grow and the immutable one.
func ringSpec() apiextensionsv1.JSONSchemaProps {
	open := true
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: &open,
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"disk": {Type: "integer"}, "once": {Type: "string"}},
		XValidations: apiextensionsv1.ValidationRules{
			{Rule: "!has(oldSelf.disk) || has(self.disk) && self.disk >= oldSelf.disk", Message: "spec.disk cannot shrink"},
			{Rule: "!has(oldSelf.once) || has(self.once) && self.once == oldSelf.once", Message: "spec.once cannot be changed"},
		},
	}
}

func installRings(t *testing.T) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(api.Create(t.Context(), ringCRD())))
}

func removeRings(t *testing.T) {
	t.Helper()
	must(t, client.IgnoreNotFound(api.Delete(t.Context(), ringCRD())))
	eventually(t, "the CRD is gone", func() error {
		abandonRings(t)
		_, err := get(t, &apiextensionsv1.CustomResourceDefinition{}, "", ringCRD().Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("it is still there")
	})
}

// abandonRings removes the finalizers of rings whose operator has ended: no operator is
// left to finalize them.
func abandonRings(t *testing.T) {
	t.Helper()
	rings := &fakeapp.RingList{}
	if err := api.List(t.Context(), rings); err != nil {
		return // the kind is no longer served
	}
	for i := range rings.Items {
		r := &rings.Items[i]
		if r.DeletionTimestamp == nil || len(r.Finalizers) == 0 {
			continue
		}
		r.Finalizers = nil
		if err := api.Update(t.Context(), r); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.Error(err)
		}
	}
}

func newRing(t *testing.T, namespace, name string, size int) *fakeapp.Ring {
	t.Helper()
	var r *fakeapp.Ring
	eventually(t, "rings are served", func() error {
		r = &fakeapp.Ring{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: fakeapp.Spec{Size: size}}
		return api.Create(t.Context(), r)
	})
	return r
}

func ringReaches(t *testing.T, namespace, name, kind string, status metav1.ConditionStatus, reason string) *fakeapp.Ring {
	t.Helper()
	var r *fakeapp.Ring
	eventually(t, fmt.Sprintf("ring %s: %s becomes %s, %s", name, kind, status, reason), func() (err error) {
		if r, err = get(t, &fakeapp.Ring{}, namespace, name); err != nil {
			return err
		}
		if r.Status.ObservedGeneration != r.Generation {
			return errors.New("the status is about an older generation")
		}
		return condition(r.Status.Conditions, kind, status, reason)
	})
	return r
}

func resize(t *testing.T, namespace, name string, edit func(*fakeapp.Spec)) {
	t.Helper()
	eventually(t, "the ring is edited", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, name)
		if err != nil {
			return err
		}
		edit(&r.Spec)
		return api.Update(t.Context(), r)
	})
}

func bookOf(t *testing.T, namespace, name string) history.Log {
	t.Helper()
	cm, err := get(t, &corev1.ConfigMap{}, namespace, name+".ring-history")
	must(t, err)
	book, err := history.Decode(cm.Data[history.Key])
	must(t, err)
	return book
}

func TestMissingCRDDisablesOneApplication(t *testing.T) {
	removeRings(t)
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	deploymentOf(t, namespace, "m")
	for _, name := range []string{"first", "second"} { // envtest has no garbage collector
		installRings(t)
		newRing(t, namespace, name, 1)
		ringReaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
		removeRings(t)
		newMemcached(t, namespace, "beside-"+name, 1)
		deploymentOf(t, namespace, "beside-"+name)
	}
	installRings(t)
}

func TestStepsGrowShrinkAndPrune(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newRing(t, namespace, "r", 3)
	r := ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if len(r.Status.Members) != 3 {
		t.Errorf("members are %v, want 3", r.Status.Members)
	}
	_, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if _, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd"); !apierrors.IsNotFound(err) {
		t.Errorf("what is no longer wanted must be pruned: %v", err)
	}
	book := bookOf(t, namespace, "r")
	must(t, book.Verify())
	if n := len(book.Entries); n != 6 { // 3 added, 2 promoted, 1 removed
		t.Errorf("the history has %d entries, want 6", n)
	}
	quiet(t, namespace, op)
}

func TestFinalizationStepsThenDeletion(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	startOperator(t, namespace)
	r := newRing(t, namespace, "r", 3)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	must(t, api.Delete(t.Context(), r))
	eventually(t, "the ring is finalized and deleted", func() error {
		_, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %w", err)
	})
	last, _ := bookOf(t, namespace, "r").Last()
	if last.Step.Name != "Remove" {
		t.Errorf("the last step was %s, want the removal of the last member", last.Step)
	}
}

func TestPanicAffectsOneObjectOnly(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newRing(t, namespace, "good", 1)
	newRing(t, namespace, "bad", 1)
	resize(t, namespace, "bad", func(s *fakeapp.Spec) { s.Mood = "panic" })
	ringReaches(t, namespace, "bad", lifecycle.ConditionStalled, metav1.ConditionTrue, "OperatorBug")
	resize(t, namespace, "good", func(s *fakeapp.Spec) { s.Size = 3 })
	ringReaches(t, namespace, "good", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	resize(t, namespace, "bad", func(s *fakeapp.Spec) { s.Mood = "fail" })
	ringReaches(t, namespace, "bad", lifecycle.ConditionStalled, metav1.ConditionTrue, "CannotRender")
	resize(t, namespace, "bad", func(s *fakeapp.Spec) { s.Mood = "" })
	ringReaches(t, namespace, "bad", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
}

func TestGateHoldsUntilWorldImproves(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newRing(t, namespace, "r", 3)
	r := ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	sick := "r-" + r.Status.Members[0]
	// The pod is neither starting nor lost: no rule applies, but the gate does.
	setHealth(t, namespace, sick, "Sulking")
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	r = ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, "HeldByGate")
	t.Log(r.Status.Conditions[0].Message)
	last, _ := bookOf(t, namespace, "r").Last()
	if last.Result != history.ResultRefused {
		t.Errorf("the refusal must be recorded, the last entry is %s", last.Result)
	}
	setHealth(t, namespace, sick, fakeapp.Healthy)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
}

func setHealth(t *testing.T, namespace, name string, h fakeapp.Health) {
	t.Helper()
	cm, err := get(t, &corev1.ConfigMap{}, namespace, name)
	must(t, err)
	cm.Data["health"] = string(h)
	must(t, api.Update(t.Context(), cm))
}

func TestLostMemberIsReplaced(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newRing(t, namespace, "r", 3)
	r := ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	lost := r.Status.Members[1]
	setHealth(t, namespace, "r-"+lost, fakeapp.Lost)
	eventually(t, "another member takes its place", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil || len(r.Status.Members) != 3 || r.Status.Members[1] == lost {
			return fmt.Errorf("members are %v: %w", r.Status.Members, err)
		}
		return condition(r.Status.Conditions, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	})
}

func TestBudgetLimitsConcurrency(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	op := startOperator(t, namespace, func(_ *ctrl.Options, e *engine.Options) { e.Budget = 1 })
	for _, name := range []string{"a", "b"} {
		newRing(t, namespace, name, 3)
		ringReaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	quiet(t, namespace, op)
	op.lists.Refuse(errors.New("the ring is away"))
	resize(t, namespace, "a", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, namespace, "a", lifecycle.ConditionReady, metav1.ConditionFalse, "StepFailed")
	resize(t, namespace, "b", func(s *fakeapp.Spec) { s.Size = 2 })
	r := ringReaches(t, namespace, "b", lifecycle.ConditionReady, metav1.ConditionFalse, "HeldByGate")
	t.Log(r.Status.Conditions[0].Message)
	op.lists.Refuse(nil)
	for _, name := range []string{"a", "b"} {
		ringReaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
}

// An object that is blocked during a change frees its budget slot for others.
func TestBlockedObjectHoldsNoSlot(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	op := startOperator(t, namespace, func(_ *ctrl.Options, e *engine.Options) { e.Budget = 1 })
	for _, name := range []string{"a", "b"} {
		newRing(t, namespace, name, 3)
		ringReaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	op.lists.Refuse(errors.New("the ring is away"))
	resize(t, namespace, "a", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, namespace, "a", lifecycle.ConditionReady, metav1.ConditionFalse, "StepFailed")
	resize(t, namespace, "b", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, namespace, "b", lifecycle.ConditionReady, metav1.ConditionFalse, "HeldByGate")
	resize(t, namespace, "a", func(s *fakeapp.Spec) { s.Mood = "fail" })
	ringReaches(t, namespace, "a", lifecycle.ConditionReady, metav1.ConditionFalse, "CannotRender")
	op.lists.Refuse(nil)
	ringReaches(t, namespace, "b", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	ringReaches(t, namespace, "a", lifecycle.ConditionReady, metav1.ConditionFalse, "CannotRender")
}

// A step that fails repeatedly is reported once, and the history is not written each time.
func TestRepeatedFailureIsOneHistoryEntry(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	op.lists.Refuse(errors.New("the ring is away"))
	newRing(t, namespace, "r", 1)
	eventually(t, "the step has failed five times", func() error {
		if n := op.lists.Refused(); n < 5 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	op.lists.Refuse(nil)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	failed := 0
	for _, e := range bookOf(t, namespace, "r").Entries {
		if e.Result == history.ResultFailed {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d entries say that it failed", failed)
	}
}

func TestOnlyLeaderActsAndStandbyTakesOver(t *testing.T) {
	namespace := newNamespace(t)
	elect := func(o *ctrl.Options, _ *engine.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "test", namespace
		o.LeaderElectionReleaseOnCancel = true
	}
	first := startOperator(t, namespace, elect)
	eventually(t, "the first leads", func() error {
		_, err := get(t, &coordinationv1.Lease{}, namespace, "test")
		return err
	})
	newMemcached(t, namespace, "m", 1)
	deploymentOf(t, namespace, "m")
	second := startOperator(t, namespace, elect)
	newMemcached(t, namespace, "n", 1)
	deploymentOf(t, namespace, "n")
	for _, line := range second.since(0) {
		t.Errorf("the standby wrote: %s", line)
	}
	first.stop()
	newMemcached(t, namespace, "o", 1)
	deploymentOf(t, namespace, "o")
}
