package envtest_test

import (
	"errors"
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/podset/contract"
	"github.com/governor-dev/governor/lifecycle"
)

// kstatusOf is what Flux, Argo CD and helm --wait conclude from the object.
func kstatusOf(t *testing.T, kind schema.GroupVersionKind, namespace, name string) status.Status {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	obj, err := get(t, obj, namespace, name)
	must(t, err)
	result, err := status.Compute(obj)
	must(t, err)
	return result.Status
}

var podSet = appv1.GroupVersion.WithKind("PodSet")

// TestKstatusFollowsARollout: while servers start, clients that wait with kstatus wait, too, and
// no longer.
func TestKstatusFollowsARollout(t *testing.T) {
	namespace, kind := newNamespace(t), cachev1.GroupVersion.WithKind("Memcached")
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
	if got := kstatusOf(t, kind, namespace, "m"); got != status.InProgressStatus {
		t.Errorf("an instance that starts is %s", got)
	}
	playKubernetes(t, namespace, "m")
	m := reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	if got := kstatusOf(t, kind, namespace, "m"); got != status.CurrentStatus {
		t.Errorf("an instance that serves is %s", got)
	}
	m.Spec.Version = "1.6.38"
	must(t, api.Update(t.Context(), m))
	if got := kstatusOf(t, kind, namespace, "m"); got != status.InProgressStatus {
		t.Errorf("an instance whose spec was changed is %s", got)
	}
}

// A set that serves and waits for a policy is Ready, and ChangeHeld names the change. Without the policy it goes on.
func TestHeldChangeLeavesPodSetReady(t *testing.T) {
	s := newSets(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 2 })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	if got := kstatusOf(t, podSet, s.namespace, contract.Set); got != status.CurrentStatus {
		t.Errorf("a settled set is %s", got)
	}
	p := newPolicy(t, s.namespace, "frozen", func(spec *v1alpha1.OperationPolicySpec) {
		spec.Selector.Kinds, spec.Freeze = []string{"PodSet"}, &v1alpha1.Freeze{Reason: "quarter's end"}
	})
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Template.Spec.Containers[0].Image = "registry.k8s.io/pause:3.9" })
	eventually(t, "the set is Ready and the change is held", func() error { return s.holdsChange(t) })
	if got := kstatusOf(t, podSet, s.namespace, contract.Set); got != status.CurrentStatus {
		t.Errorf("a set that serves and waits for a policy is %s", got)
	}

	must(t, api.Delete(t.Context(), p))
	after := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	if c := apimeta.FindStatusCondition(after.Status.Conditions, lifecycle.ConditionChangeHeld); c != nil {
		t.Errorf("without the policy it still says %+v", c)
	}
}

func (s *sets) holdsChange(t *testing.T) error {
	t.Helper()
	p := s.Tells(t)
	if p.Status.ObservedGeneration != p.Generation {
		return errors.New("the status is about an older generation")
	}
	for kind, want := range map[string]metav1.ConditionStatus{
		lifecycle.ConditionReady: metav1.ConditionTrue, lifecycle.ConditionChangeHeld: metav1.ConditionTrue, lifecycle.ConditionReconciling: metav1.ConditionFalse,
	} {
		if err := condition(p.Status.Conditions, kind, want, lifecycle.ReasonHeldByPolicy); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}
