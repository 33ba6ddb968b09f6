package envtest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

func TestDriftOfPausedObjectIsReported(t *testing.T) {
	namespace, op := settledRing(t, 1)
	annotateRing(t, namespace, lifecycle.AnnotationPaused, "true")
	ringReaches(t, namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	cm, err := get(t, &corev1.ConfigMap{}, namespace, "r")
	must(t, err)
	cm.Data["ring"] = "mine"
	must(t, api.Update(t.Context(), cm, client.FieldOwner("kubectl-edit")))
	must(t, api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r-odd"}}))
	want := "Others changed what the operator provides, and it is left as it is: ConfigMap r (data.ring) by kubectl-edit; ConfigMap r-odd is missing."
	eventually(t, "drift is reported", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil {
			return err
		}
		if said := messageOf(r.Status.Conditions, lifecycle.ConditionDrifted); said != want {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	quiet(t, namespace, op)
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	must(t, condition(r.Status.Conditions, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared"))
	setHealth(t, namespace, "r-"+r.Status.Members[0], fakeapp.Lost)
	r = ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, "MemberLost")
	t.Log(messageOf(r.Status.Conditions, lifecycle.ConditionReady))
	annotateRing(t, namespace, lifecycle.AnnotationPaused, "false")
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if cm, err = get(t, &corev1.ConfigMap{}, namespace, "r"); err != nil || cm.Data["ring"] != "r" {
		t.Errorf("resumed, the drift is %v, %v", cm.Data, err)
	}
}

// Drift of a paused object is relative to its present spec. A change of the spec is no
// drift, neither during the pause nor after it.
func TestSpecChangeDuringPauseIsAppliedLater(t *testing.T) {
	namespace, op := settledRing(t, 2)
	newPolicy(t, namespace, "report", func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = v1alpha1.DriftPolicyReport })
	annotateRing(t, namespace, lifecycle.AnnotationPaused, "true")
	ringReaches(t, namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	resizeByEdit(t, namespace, func(s *fakeapp.Spec) { s.Size = 3 })
	eventually(t, "the generation is observed", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil {
			return err
		}
		if r.Status.ObservedGeneration != r.Generation {
			return fmt.Errorf("%w: %d of %d", errNotYet, r.Status.ObservedGeneration, r.Generation)
		}
		if said := messageOf(r.Status.Conditions, lifecycle.ConditionDrifted); said != "" {
			t.Errorf("what is declared is called drift: %s", said)
		}
		return condition(r.Status.Conditions, lifecycle.ConditionReady, metav1.ConditionFalse, "TooFewMembers")
	})
	quiet(t, namespace, op)
	annotateRing(t, namespace, lifecycle.AnnotationPaused, "false")
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	_, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err)
}

// left waits until the condition reports the drift; an empty want means no drift.
func left(t *testing.T, namespace, want string) *cachev1.Memcached {
	t.Helper()
	var m *cachev1.Memcached
	eventually(t, "drift is reported: "+want, func() (err error) {
		if m, err = get(t, &cachev1.Memcached{}, namespace, "m"); err != nil {
			return err
		}
		if said := messageOf(m.Status.Conditions, lifecycle.ConditionDrifted); m.Status.ObservedGeneration != m.Generation || !strings.HasSuffix(said, want) || want == "" && said != "" {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	return m
}

func TestDriftStaysIfPolicyReportsOnly(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	p := newPolicy(t, namespace, "report", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Kinds, s.DriftPolicy = []string{"Memcached"}, v1alpha1.DriftPolicyReport
	})
	newMemcached(t, namespace, "m", 1)
	deploymentOf(t, namespace, "m")
	quiet(t, namespace, op)
	dep := deploymentOf(t, namespace, "m")
	dep.Spec.Replicas = new(int32(7))
	must(t, api.Update(t.Context(), dep, client.FieldOwner("kubectl-scale")))
	m := left(t, namespace, "Deployment m (spec.replicas) by kubectl-scale.")
	quiet(t, namespace, op)
	m.Spec.Version = "1.6.38"
	must(t, api.Update(t.Context(), m))
	eventually(t, "what the user declares is provided, around the drift", func() error {
		dep = deploymentOf(t, namespace, "m")
		if image := dep.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":1.6.38") || *dep.Spec.Replicas != 7 {
			return fmt.Errorf("%s, %d replicas", image, *dep.Spec.Replicas)
		}
		return nil
	})
	left(t, namespace, "Deployment m (spec.replicas) by kubectl-scale.")
	must(t, api.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}))
	m = left(t, namespace, "Service m is missing; Deployment m (spec.replicas) by kubectl-scale.")
	quiet(t, namespace, op)
	m.Spec.Size = 2
	must(t, api.Update(t.Context(), m))
	left(t, namespace, "Service m is missing.")
	if dep = deploymentOf(t, namespace, "m"); *dep.Spec.Replicas != 2 {
		t.Errorf("the user declares 2 servers, and there are %d", *dep.Spec.Replicas)
	}
	must(t, api.Delete(t.Context(), p))
	left(t, namespace, "")
	_, err := get(t, &corev1.Service{}, namespace, "m")
	must(t, err)
}

// A value that the user declares after another manager has set it belongs to both managers.
// The next declaration is applied, also if the user makes it while no operator runs.
func TestDeclaredDriftIsNoDrift(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newPolicy(t, namespace, "report", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Kinds, s.DriftPolicy = []string{"Memcached"}, v1alpha1.DriftPolicyReport
	})
	newMemcached(t, namespace, "m", 1)
	deploymentOf(t, namespace, "m")
	quiet(t, namespace, op)
	acceptDrift(t, namespace, 7)
	quiet(t, namespace, op)
	declaresSize(t, namespace, 8)
	left(t, namespace, "")
	must(t, replicas(t, namespace, "m", 8))
	acceptDrift(t, namespace, 9)
	quiet(t, namespace, op)
	op.stop()
	declaresSize(t, namespace, 10)
	startOperator(t, namespace)
	left(t, namespace, "")
	must(t, replicas(t, namespace, "m", 10))
}

// acceptDrift scales the Deployment by hand, and then declares that size.
func acceptDrift(t *testing.T, namespace string, size int32) {
	t.Helper()
	dep := deploymentOf(t, namespace, "m")
	dep.Spec.Replicas = &size
	must(t, api.Update(t.Context(), dep, client.FieldOwner("kubectl-scale")))
	left(t, namespace, "Deployment m (spec.replicas) by kubectl-scale.")
	declaresSize(t, namespace, size)
	left(t, namespace, "")
}

func declaresSize(t *testing.T, namespace string, size int32) {
	t.Helper()
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	must(t, err)
	m.Spec.Size = size
	must(t, api.Update(t.Context(), m))
}

// A deletion while no operator runs is reported too, and a new object is applied.
func TestMissingObjectsAreReportedAfterRestart(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newPolicy(t, namespace, "report", func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = v1alpha1.DriftPolicyReport })
	newRing(t, namespace, "r", 3)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	quiet(t, namespace, op)
	op.stop()
	must(t, api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r-odd"}}))
	op = startOperatorIn(t, setting{lists: op.lists}, namespace)
	ringReaches(t, namespace, "r", lifecycle.ConditionDrifted, metav1.ConditionTrue, "ChangedByOthers")
	quiet(t, namespace, op)
	if _, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd"); !apierrors.IsNotFound(err) {
		t.Errorf("it was made again, or cannot be seen: %v", err)
	}
	annotateRing(t, namespace, "anybody/wakes", "it")
	quiet(t, namespace, op)
	newRing(t, namespace, "another", 1)
	ringReaches(t, namespace, "another", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if _, err := get(t, &corev1.ConfigMap{}, namespace, "another"); err != nil {
		t.Errorf("a newly declared object is missing: %v", err)
	}
}
