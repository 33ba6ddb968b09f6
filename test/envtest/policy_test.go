package envtest_test

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// newPolicy creates a policy for the rings of one namespace, until the test ends.
func newPolicy(t *testing.T, namespace, name string, edit func(*v1alpha1.OperationPolicySpec)) *v1alpha1.OperationPolicy {
	t.Helper()
	p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}}
	p.Spec.Selector = v1alpha1.ObjectSelector{Kinds: []string{"Ring"}, Namespaces: []string{namespace}}
	edit(&p.Spec)
	must(t, api.Create(t.Context(), p))
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), p) })
	return p
}

func changePolicy(t *testing.T, p *v1alpha1.OperationPolicy, edit func(*v1alpha1.OperationPolicySpec)) {
	t.Helper()
	eventually(t, "the policy is changed", func() error {
		now, err := get(t, &v1alpha1.OperationPolicy{}, "", p.Name)
		if err != nil {
			return err
		}
		edit(&now.Spec)
		return api.Update(t.Context(), now)
	})
}

// settledRing creates a settled ring with its own operator.
func settledRing(t *testing.T, size int) (namespace string, op *operator) {
	t.Helper()
	installRings(t)
	namespace = newNamespace(t)
	op = startOperator(t, namespace)
	newRing(t, namespace, "r", size)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	return namespace, op
}

func TestPolicyPauses(t *testing.T) {
	namespace, op := settledRing(t, 3)
	p := newPolicy(t, namespace, "hold", func(s *v1alpha1.OperationPolicySpec) { s.Paused = true })
	r := ringReaches(t, namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	if c := apimeta.FindStatusCondition(r.Status.Conditions, lifecycle.ConditionPaused); !strings.Contains(c.Message, p.Name) {
		t.Errorf("it does not say which policy: %s", c.Message)
	}
	quiet(t, namespace, op)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 4 })
	quiet(t, namespace, op)
	must(t, api.Delete(t.Context(), p))
	r = ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	if len(r.Status.Members) != 4 {
		t.Errorf("members %v", r.Status.Members)
	}
}

// Without the CRDs of policies the operator continues, and with the CRDs restored it
// follows policies.
func TestPolicyCRDsCanBeRemovedAndRestored(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	newPolicy(t, namespace, "hold", func(s *v1alpha1.OperationPolicySpec) { s.Paused = true })
	ringReaches(t, namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	crd := crdOf(t, "operationpolicies.governor.dev")
	must(t, api.Delete(t.Context(), crd))
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, Annotations: crd.Annotations}
	eventually(t, "the kind is there again", func() error { return api.Create(t.Context(), crd.DeepCopy()) })
	eventually(t, "the policy is there again", func() error {
		p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-again"}}
		p.Spec.Selector.Namespaces = []string{namespace}
		p.Spec.Paused = true
		t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), p) })
		return client.IgnoreAlreadyExists(api.Create(t.Context(), p))
	})
	ringReaches(t, namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
}

func crdOf(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := get(t, &apiextensionsv1.CustomResourceDefinition{}, "", name)
	must(t, err)
	return crd
}
