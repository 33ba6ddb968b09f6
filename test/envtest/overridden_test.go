package envtest_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// overrideData makes the API server change data.ring of the ConfigMap at each write, until the returned
// function is called.
func overrideData(t *testing.T, namespace, name string) (end func()) {
	t.Helper()
	p := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "overrides-" + namespace},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints:   configMaps(admissionv1.Create, admissionv1.Update),
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "one", Expression: fmt.Sprintf("object.metadata.namespace == %q && object.metadata.name == %q", namespace, name),
			}},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "add", path: "/data/ring", value: "theirs"}]`},
			}},
		},
	}
	b := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: p.Name}}
	return admits(t, p, b)
}

// An admission policy that changes what Governor applies is reported, causes no storm of writes, and is undone
// after its end, which no event announces.
func TestOverriddenObjectIsReportedAndRestored(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	end := overrideData(t, namespace, "r")
	touches := 0
	eventually(t, "the override is reported", func() error {
		cm, err := get(t, &corev1.ConfigMap{}, namespace, "r")
		if err != nil {
			return err
		}
		if cm.Data["ring"] != "theirs" { // the policy has no effect yet
			touches++
			cm.Annotations = map[string]string{"touched": fmt.Sprint(touches)}
			return fmt.Errorf("not overridden yet: %w", api.Update(t.Context(), cm, client.FieldOwner("kubectl-edit")))
		}
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err != nil {
			return err
		}
		if said := messageOf(r.Status.Conditions, lifecycle.ConditionDrifted); !strings.Contains(said, "ConfigMap r (data.ring) by an admission webhook or policy") {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	end()
	eventually(t, "the declared value is back", func() error {
		cm, err := get(t, &corev1.ConfigMap{}, namespace, "r")
		if err != nil || cm.Data["ring"] != "r" {
			return fmt.Errorf("it has %v: %w", cm.Data, err)
		}
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if said := messageOf(r.Status.Conditions, lifecycle.ConditionDrifted); said != "" {
			return fmt.Errorf("it says %q: %w", said, err)
		}
		return nil
	})
}
