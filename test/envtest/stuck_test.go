package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// refuseCreation makes the API server refuse a ConfigMap of the name, until the returned function is called.
func refuseCreation(t *testing.T, namespace, name string) (accept func()) {
	t.Helper()
	p := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuses-" + namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: configMaps(admissionv1.Create),
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.namespace != %q || object.metadata.name != %q", namespace, name),
				Message:    "this name is not welcome", Reason: new(metav1.StatusReasonForbidden),
			}},
		},
	}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: p.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	accept = admits(t, p, b)
	eventually(t, "the API server refuses "+name, func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := api.Create(t.Context(), probe, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	return accept
}

func configMaps(on ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: on, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
}

// admits puts an admission policy into effect until the returned function is called, or the test ends.
func admits(t *testing.T, policy, binding client.Object) (end func()) {
	t.Helper()
	end = func() {
		for _, obj := range []client.Object{binding, policy} {
			if err := api.Delete(context.WithoutCancel(t.Context()), obj); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	must(t, api.Create(t.Context(), policy))
	must(t, api.Create(t.Context(), binding))
	return end
}

// refusedWrites counts the answers 403.
type refusedWrites struct{ n atomic.Int64 }

func (c *refusedWrites) count(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusForbidden && r.Method == http.MethodPost {
		c.n.Add(1)
	}
	return answer, err
}

func replaced(t *testing.T, namespace, name, lost string, size int) {
	t.Helper()
	eventually(t, lost+" is replaced", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, name)
		if err != nil || len(r.Status.Members) != size || slices.Contains(r.Status.Members, lost) {
			return fmt.Errorf("members %v, %v: %w", r.Status.Members, r.Status.Conditions, err)
		}
		return nil
	})
}

// The API server refuses one repair for ever. Another fault of the object is repaired all the same, the
// refused step is tried ever more rarely, and one event reports it.
func TestRepairsContinueDespiteARefusedStep(t *testing.T) {
	installRings(t)
	namespace, refused := newNamespace(t), &refusedWrites{}
	op := startOperatorIn(t, setting{meddle: refused.count}, namespace)
	newRing(t, namespace, "r", 5)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	accept := refuseCreation(t, namespace, "r-m000000")
	must(t, api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r-m000000"}}))
	ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "Forbidden")
	setHealth(t, namespace, "r-m000001", fakeapp.Lost)
	replaced(t, namespace, "r", "m000001", 5)
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 4 }) // a change waits
	r := ringReaches(t, namespace, "r", lifecycle.ConditionStalled, metav1.ConditionTrue, "Forbidden")
	c := apimeta.FindStatusCondition(r.Status.Conditions, lifecycle.ConditionResourcesBlocked)
	if c == nil || c.Reason != "Forbidden" || !strings.Contains(c.Message, "CreatePod m000000") || !strings.Contains(c.Message, "this name is not welcome") {
		t.Errorf("the conditions are %v", r.Status.Conditions)
	}
	if len(r.Status.Members) != 5 {
		t.Errorf("the members are %v", r.Status.Members)
	}
	if n := refused.n.Load(); n > 10 {
		t.Errorf("%d attempts", n)
	}
	quiet(t, namespace, op)
	eventually(t, "one event reports it", func() error { return warnedOnce(t, namespace, "Forbidden") })
	accept()
	ringSettles(t, namespace, "r", 4)
}

func warnedOnce(t *testing.T, namespace, reason string) error {
	t.Helper()
	var list eventsv1.EventList
	must(t, api.List(t.Context(), &list, client.InNamespace(namespace)))
	n := 0
	for _, e := range list.Items {
		if e.Reason != reason || e.Type != corev1.EventTypeWarning {
			continue
		}
		if n++; e.Series != nil {
			return errors.New("it is repeated")
		}
	}
	if n != 1 {
		return fmt.Errorf("%d warnings", n)
	}
	return nil
}
