package envtest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// applied applies the objects of a manifest for the duration of the test.
func applied(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	for _, doc := range bytes.Split(raw, []byte("---\n")) {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(doc, &u.Object))
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership))
		t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), u) })
	}
}

// grant gives users a role in the namespace.
func grant(t *testing.T, namespace, name string, rule rbacv1.PolicyRule, users ...string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	must(t, api.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
	bind(t, namespace, name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, users...)
}

func bind(t *testing.T, namespace, name string, to rbacv1.RoleRef, users ...string) {
	t.Helper()
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: to}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: user, APIGroup: rbacv1.GroupName})
	}
	must(t, api.Create(t.Context(), b))
}

// tenants creates a namespace with a Memcached that two users may edit, without an
// operator.
func tenants(t *testing.T, edit func(*cachev1.Memcached)) string {
	t.Helper()
	namespace := newNamespace(t)
	grant(t, namespace, "edit", rbacv1.PolicyRule{
		APIGroups: []string{cachev1.GroupVersion.Group}, Resources: []string{"memcacheds"}, Verbs: []string{"*"},
	}, "bob", "carol", "system:serviceaccount:governor-system:governor")
	m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}, Spec: cachev1.MemcachedSpec{Size: 1, ContainerPort: 11211}}
	edit(m)
	eventually(t, "what another test has installed is gone", func() error { return api.Create(t.Context(), m) })
	applied(t, "../../config/manager/bypass.yaml")
	return namespace
}

// change edits the Memcached as the user.
func change(t *testing.T, namespace, user string, edit func(*cachev1.Memcached), o ...client.PatchOption) error {
	t.Helper()
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	must(t, err)
	base := m.DeepCopy()
	edit(m)
	return asUser(t, user).Patch(t.Context(), m, client.MergeFrom(base), o...)
}

// forbids waits until the API server rejects the edit with these words.
func forbids(t *testing.T, namespace, user string, edit func(*cachev1.Memcached), words ...string) {
	t.Helper()
	eventually(t, user+" is refused", func() error {
		err := change(t, namespace, user, edit, client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("it was not refused: %w", err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				return fmt.Errorf("without %q: %w", w, err)
			}
		}
		return nil
	})
}

// allows waits until the API server accepts the edit.
func allows(t *testing.T, namespace, user string, edit func(*cachev1.Memcached)) {
	t.Helper()
	eventually(t, user+" may", func() error { return change(t, namespace, user, edit) })
}

func bypassing(reason, by string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) {
		m.Annotations = map[string]string{lifecycle.AnnotationBypass: reason}
		if by != "" {
			m.Annotations[lifecycle.AnnotationBypassBy] = by
		}
	}
}

var bypassRole = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "governor-policy-bypass"}

// Only users with the verb can set the annotation, and only in their own name.
func TestBypassIsAuthorized(t *testing.T) {
	namespace := tenants(t, func(*cachev1.Memcached) {})
	forbids(t, namespace, "bob", bypassing("hurry", "bob"), `needs the verb "bypass" on operationpolicies.governor.dev in the namespace `+namespace,
		"which bob does not have", "governor-policy-bypass")
	bind(t, namespace, "bypass", bypassRole, "bob")
	forbids(t, namespace, "bob", bypassing("hurry", ""), `governor.dev/bypass-policy-by must be "bob"`, "kubectl governor bypass")
	forbids(t, namespace, "bob", bypassing("hurry", "carol"), `must be "bob"`)
	allows(t, namespace, "bob", bypassing("hurry", "bob"))
	grow := func(m *cachev1.Memcached) { m.Spec.Size = 2 }
	forbids(t, namespace, "carol", grow, "so would this change of its spec", "carol does not have it", "bypass --end")
	allows(t, namespace, "bob", grow)
	allows(t, namespace, "carol", func(m *cachev1.Memcached) { m.Labels = map[string]string{"team": "a"} })
	forbids(t, namespace, "carol", bypassing("as I like", "bob"), "which carol does not have")
	forbids(t, namespace, "carol", bypassing("hurry", "carol"), "which carol does not have")
	allows(t, namespace, "carol", func(m *cachev1.Memcached) { m.Annotations, m.Spec.Size = nil, 3 })
	allows(t, namespace, "carol", func(m *cachev1.Memcached) { m.Annotations = nil })
	made := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "n"}, Spec: cachev1.MemcachedSpec{Size: 1, ContainerPort: 11211}}
	bypassing("from the start", "carol")(made)
	if err := asUser(t, "carol").Create(t.Context(), made); !apierrors.IsForbidden(err) {
		t.Errorf("made with a bypass: %v", err)
	}
}

// An object that has the annotation without a user's name, because it is older than the admission policy or was
// created so, passes the policies all the same: a change of its spec needs the verb, and anyone may end the bypass.
func TestBypassWithoutAUserNeedsTheVerb(t *testing.T) {
	namespace := tenants(t, bypassing("the disk is full", ""))
	forbids(t, namespace, "carol", bypassing("another", "carol"), "which carol does not have")
	forbids(t, namespace, "carol", func(m *cachev1.Memcached) { m.Spec.Size = 2 }, "so would this change of its spec", "bypass --end")
	allows(t, namespace, "carol", func(m *cachev1.Memcached) { m.Labels = map[string]string{"team": "a"} })
	allows(t, namespace, "carol", func(m *cachev1.Memcached) { m.Annotations, m.Spec.Size = nil, 2 })
}

// The operator removes the finalizer that holds a deletion. Users without the verb cannot.
func TestUsersCannotRemoveHoldFinalizer(t *testing.T) {
	const finalizer = "governor.dev/finalize"
	namespace := tenants(t, func(m *cachev1.Memcached) { m.Finalizers = []string{finalizer, "example.com/other"} })
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	must(t, err)
	must(t, api.Delete(t.Context(), m))
	drop := func(m *cachev1.Memcached) { m.Finalizers = []string{"example.com/other"} }
	t.Cleanup(func() {
		_ = api.Patch(context.WithoutCancel(t.Context()), m, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	forbids(t, namespace, "carol", drop, "removing the finalizer "+finalizer, "which carol does not have")
	const operator = "system:serviceaccount:governor-system:governor"
	grant(t, namespace, "operator", roleOnPolicies(t), operator)
	allows(t, namespace, operator, drop)
}

// A manifest has no finalizers. kubectl replace, and Argo CD with Replace=true, write it
// without them.
func TestReplaceWithoutFinalizersIsAllowed(t *testing.T) {
	namespace := tenants(t, func(m *cachev1.Memcached) { m.Finalizers = []string{"governor.dev/finalize"} })
	forbids(t, namespace, "carol", bypassing("the admission policy is there", "carol"), "which carol does not have")
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	must(t, err)
	m.Finalizers, m.Spec.Size = nil, 2
	must(t, asUser(t, "carol").Update(t.Context(), m))
}

// roleOnPolicies returns the rule about policies in the operator's role.
func roleOnPolicies(t *testing.T) rbacv1.PolicyRule {
	t.Helper()
	raw, err := os.ReadFile("../../config/rbac/role.yaml")
	must(t, err)
	var role rbacv1.ClusterRole
	must(t, yaml.Unmarshal(bytes.SplitN(raw, []byte("---\n"), 3)[1], &role))
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "operationpolicies") {
			return rule
		}
	}
	t.Fatal("the role says nothing about policies")
	return rbacv1.PolicyRule{}
}

func labelled(labels map[string]string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) { m.Labels = labels }
}

// Without the verb, no change of labels removes an object from a policy's selection.
func TestLabelChangeCannotEscapePolicy(t *testing.T) {
	namespace := tenants(t, labelled(map[string]string{"tier": "production", "team": "a"}))
	p := newPolicy(t, namespace, "nights", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Kinds = []string{"Memcached.cache.example.com"}
		s.Selector.LabelSelector = &metav1.LabelSelector{
			MatchLabels: map[string]string{"tier": "production"},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
				{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist},
			},
		}
		s.Canary = &v1alpha1.Canary{Soak: metav1.Duration{Duration: time.Hour}, Waves: []v1alpha1.Wave{
			{Name: "first", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"wave": "first"}}},
		}}
	})
	escapes := []string{"without these labels the policy \"" + p.Name + "\" does not select the object any more", "bob does not have it"}
	for _, labels := range []map[string]string{
		nil, {"tier": "test", "team": "a"}, {"tier": "production", "team": "c"}, {"tier": "production"},
		{"tier": "production", "team": "a", "exempt": "yes"},
	} {
		forbids(t, namespace, "bob", labelled(labels), escapes...)
	}
	forbids(t, namespace, "bob", labelled(map[string]string{"tier": "production", "team": "a", "wave": "first"}), "an earlier wave of the policy", p.Name)
	allows(t, namespace, "bob", labelled(map[string]string{"tier": "production", "team": "b", "other": "x"}))
	grant(t, namespace, "may", rbacv1.PolicyRule{
		APIGroups: []string{"governor.dev"}, Resources: []string{"operationpolicies"}, ResourceNames: []string{p.Name}, Verbs: []string{"bypass"},
	}, "bob")
	allows(t, namespace, "bob", labelled(nil))
	allows(t, namespace, "carol", labelled(map[string]string{"any": "thing"})) // no policy selects it
}

// Without the verb, no change of labels removes an object from the pool of a budget.
func TestLabelChangeCannotEscapeBudget(t *testing.T) {
	namespace := tenants(t, labelled(map[string]string{"pool": "a"}))
	p := newPolicy(t, namespace, "one", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Kinds = []string{"Memcached.cache.example.com"}
		s.Budget = &v1alpha1.Budget{MaxDisrupted: 1, Scope: v1alpha1.BudgetScopeLabel, Label: "pool"}
	})
	for _, labels := range []map[string]string{nil, {"pool": "b"}} {
		forbids(t, namespace, "bob", labelled(labels), "another limit of the budget of the policy \""+p.Name+"\"")
	}
	allows(t, namespace, "bob", labelled(map[string]string{"pool": "a", "other": "x"}))
}

// The plugin sets both annotations, and the history contains the user's name.
func TestPluginBypasses(t *testing.T) {
	a := previews(t, 3)
	p := newPolicy(t, a.namespace, "freeze", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} })
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, lifecycle.ReasonHeldByPolicy)
	expect(t, a.namespace, 1, []string{"give a reason with --reason, or end the bypass with --end"}, "bypass", "ring/r")
	t.Log(expect(t, a.namespace, 0, []string{"ring/r passes all policies, by "}, "bypass", "ring/r", "--reason", "INC-4711"))
	ringSettles(t, a.namespace, "r", 2)
	last, _ := bookOf(t, a.namespace, "r").Last()
	if last.Bypass == nil || last.Bypass.Reason != "INC-4711" || last.Bypass.By == "" || last.Bypass.By == "kubectl-governor" {
		t.Errorf("the history has %+v", last.Bypass)
	}
	expect(t, a.namespace, 0, []string{"policies hold its steps again"}, "bypass", "ring/r", "--end")
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 1 })
	ringHeld(t, a.namespace, "r", p.Name)
}
