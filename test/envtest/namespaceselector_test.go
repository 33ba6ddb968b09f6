package envtest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/test/fakeapp"
)

// stage labels the namespace.
func stage(t *testing.T, c client.Client, namespace, value string, o ...client.PatchOption) error {
	t.Helper()
	ns, err := get(t, &corev1.Namespace{}, "", namespace)
	must(t, err)
	base := ns.DeepCopy()
	ns.Labels["stage"] = value
	return c.Patch(t.Context(), ns, client.MergeFrom(base), o...)
}

func frozenWhere(namespace, value string) func(*v1alpha1.OperationPolicySpec) {
	return func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Namespaces = []string{namespace}
		s.Selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": value}}
		s.Freeze = &v1alpha1.Freeze{Reason: "sale"}
	}
}

// A policy selects by labels of the namespace, and a change of them is effective at once.
func TestPolicySelectsByNamespaceLabels(t *testing.T) {
	namespace, _ := settledRing(t, 3)
	must(t, stage(t, api, namespace, "test"))
	p := newPolicy(t, namespace, "live", frozenWhere(namespace, "live"))
	policyIs(t, p, "selects nothing", func(s v1alpha1.OperationPolicyStatus) bool {
		return s.Selected == 0 && says(s, lifecycle.ConditionReady, policy.ConditionSelectsNothing, "")
	})
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringSettles(t, namespace, "r", 2)

	must(t, stage(t, api, namespace, "live"))
	policyIs(t, p, "selects the ring", func(s v1alpha1.OperationPolicyStatus) bool {
		return s.Selected == 1 && says(s, lifecycle.ConditionReady, "InEffect", "")
	})
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 1 })
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, lifecycle.ReasonHeldByPolicy)

	must(t, stage(t, api, namespace, "test"))
	ringSettles(t, namespace, "r", 1)
}

// An operator with rights in one namespace cannot see labels of namespaces. The policy says so, and
// holds what its other fields select.
func TestNamespaceSelectorWithoutRightsIsReported(t *testing.T) {
	asOperator.Store(t.Name(), true)
	namespace := newNamespace(t)
	narrow(t, namespace)
	startOperator(t, namespace)
	newMemcached(t, namespace, "m", 0)
	p := newPolicy(t, namespace, "live", func(s *v1alpha1.OperationPolicySpec) {
		frozenWhere(namespace, "live")(s)
		s.Selector.Kinds = []string{"Memcached"}
	})
	policyIs(t, p, "is not in effect as it is written", func(s v1alpha1.OperationPolicyStatus) bool {
		return s.Selected == 1 && says(s, lifecycle.ConditionReady, policy.ReasonNamespacesUnknown, "spec.selector.namespaceSelector")
	})
}

// Only users with the verb take a namespace out of a policy's selection.
func TestNamespaceLabelChangeCannotEscapePolicy(t *testing.T) {
	namespace := tenants(t, func(*cachev1.Memcached) {})
	grant(t, namespace, "namespace", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "patch", "update"}}, "bob")
	must(t, stage(t, api, namespace, "live"))
	p := newPolicy(t, namespace, "live", frozenWhere(namespace, "live"))
	eventually(t, "bob is refused", func() error {
		err := stage(t, asUser(t, "bob"), namespace, "test", client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "without these labels the policy \""+p.Name+"\" does not select") {
			return fmt.Errorf("not refused in these words: %w", err)
		}
		return nil
	})
	grant(t, namespace, "may", rbacv1.PolicyRule{
		APIGroups: []string{"governor.dev"}, Resources: []string{"operationpolicies"}, ResourceNames: []string{p.Name}, Verbs: []string{"bypass"},
	}, "bob")
	eventually(t, "bob may", func() error { return stage(t, asUser(t, "bob"), namespace, "test") })
}
