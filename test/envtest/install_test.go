package envtest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventsv1 "k8s.io/api/events/v1"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// install applies dist/install.yaml, as a user does.
func install(t *testing.T) {
	t.Helper()
	for _, u := range installed(t) {
		callsTo(nowhere, u)
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// installed returns the objects in dist/install.yaml.
func installed(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile("../../dist/install.yaml")
	must(t, err)
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	var all []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := docs.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}

// The installed roles suffice from the creation of an instance to its deletion.
func TestInstalledRolesSuffice(t *testing.T) {
	install(t)
	asOperator.Store(t.Name(), true)
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newMemcached(t, namespace, "m", 2)
	playKubernetes(t, namespace, "m")
	m := reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	eventually(t, "the events report it", func() error { return told(t, namespace, "RollingOut", "AllAnswer") })
	p := newPolicy(t, namespace, "all", func(s *v1alpha1.OperationPolicySpec) { s.Selector.Kinds = []string{"Memcached"} })
	policyIs(t, p, "is followed", func(s v1alpha1.OperationPolicyStatus) bool { return s.Selected == 1 })
	approvalIs(t, approve(t, &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"},
		Spec: v1alpha1.ApprovalSpec{
			TargetRef: v1alpha1.ApprovedObject{Group: cachev1.GroupVersion.Group, Kind: "Memcached", Name: "m", UID: string(m.UID), Generation: m.Generation},
			Approver:  "ann", ExpirationTime: metav1.Now(), Steps: []v1alpha1.ApprovedStep{{Name: "Restart"}},
		},
	}), metav1.ConditionFalse, policy.ReasonDone)
	must(t, api.Delete(t.Context(), m))
	quiet(t, namespace, op)
}

func told(t *testing.T, namespace string, reasons ...string) error {
	t.Helper()
	events := &eventsv1.EventList{}
	must(t, api.List(t.Context(), events, client.InNamespace(namespace)))
	var all []string
	for _, e := range events.Items {
		all = append(all, e.Reason)
	}
	for _, reason := range reasons {
		if !strings.Contains(strings.Join(all, " "), reason) {
			return fmt.Errorf("the events are %v, without %s", all, reason)
		}
	}
	return nil
}

// While the API server rejects everything, nothing is lost: the changes are applied
// afterwards.
func TestAPIServerOutage(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	newMemcached(t, namespace, "m", 1)
	dep := deploymentOf(t, namespace, "m")
	op.away.Store(true)
	dep.Spec.Replicas = new(int32(5))
	must(t, api.Update(t.Context(), dep))
	before := turns()
	eventually(t, "the operator tries", func() error {
		if turns() < before+3 {
			return errors.New("not often enough yet")
		}
		return nil
	})
	op.away.Store(false)
	eventually(t, "the drift is repaired", func() error {
		if n := *deploymentOf(t, namespace, "m").Spec.Replicas; n != 1 {
			return fmt.Errorf("replicas %d", n)
		}
		return nil
	})
}

// The ADR about Secrets is right about running with fewer permissions.
func TestNamespacedRolesSuffice(t *testing.T) {
	asOperator.Store(t.Name(), true)
	a := newConverter(t, time.Now(), func(a *adviser) {
		narrow(t, a.namespace)
		a.options.Namespace, a.options.Configuration = "governor-system", "governor"
	})
	newMemcached(t, a.namespace, "m", 2)
	playKubernetes(t, a.namespace, "m")
	reaches(t, a.namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	eventually(t, "the events report it", func() error { return told(t, a.namespace, "AllAnswer") })
	s := a.secret(t)
	must(t, api.Delete(t.Context(), s))
	a.replaced(t, s)
	a.converts(t)
}

// narrow installs permissions in one namespace, as in the variant for namespaces.
func narrow(t *testing.T, namespace string) {
	t.Helper()
	install(t)
	raw, err := os.ReadFile("../../examples/namespaced/rights.yaml")
	must(t, err)
	for _, doc := range strings.Split(strings.ReplaceAll(string(raw), "team-a", namespace), "---\n") {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(doc), &u.Object))
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
	}
	must(t, api.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "governor"}}))
}
