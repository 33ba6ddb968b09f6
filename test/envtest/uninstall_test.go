package envtest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/test/fakeapp"
)

// A definition that is deleted while objects have the operator's finalizer waits for an operator. The next one removes
// the finalizer, so that the deletion ends.
func TestANewOperatorFinishesTheDeletionOfADefinition(t *testing.T) {
	removeRings(t) // rings of other tests, which this operator does not watch, would keep the definition
	defer removeRings(t)
	namespace, op := holdable(t)
	policy := newPolicy(t, namespace, "sale", frozen)
	finalized(t, namespace, true)
	op.stop()
	must(t, api.Delete(t.Context(), policy))
	must(t, api.Delete(t.Context(), ringCRD()))
	eventually(t, "the definition waits for the ring", func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err == nil && r.DeletionTimestamp == nil {
			err = errors.New("the ring is not being deleted yet")
		}
		return err
	})
	startOperatorIn(t, setting{holdable: true, lists: op.lists}, namespace)
	eventually(t, "the definition is gone", func() error {
		_, err := get(t, &apiextensionsv1.CustomResourceDefinition{}, "", ringCRD().Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %w", err)
	})
}

// needed are the objects of the install without which no finalizer is removed.
func needed(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	kinds := []string{
		"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role", "Deployment",
	}
	all := slices.DeleteFunc(installed(t), func(u *unstructured.Unstructured) bool {
		ofUsers := strings.Contains(u.GetKind(), "Role") && u.GetName() != "governor"
		return ofUsers || !slices.Contains(kinds, u.GetKind())
	})
	if len(all) != 12 {
		t.Fatalf("the install needs %d objects", len(all))
	}
	return all
}

// While a policy can hold deletions, nothing that the operator needs to remove finalizers is deleted.
func TestUninstallIsRefusedWhileAPolicyHoldsDeletions(t *testing.T) {
	install(t)
	namespace := newNamespace(t)
	must(t, tryAll(t, func(err error) error { return err }))
	policy := newPolicy(t, namespace, "sale", func(s *v1alpha1.OperationPolicySpec) {
		frozen(s)
		s.Selector.Kinds = []string{"EtcdCluster"}
	})
	eventually(t, "the uninstall is refused", func() error {
		return tryAll(t, func(err error) error {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `the policy "`+policy.Name+`" can hold deletions of EtcdClusters`) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	})
	collection := api.DeleteAllOf(t.Context(), &rbacv1.ClusterRoleBinding{}, client.MatchingFields{"metadata.name": "governor"}, client.DryRunAll)
	if !apierrors.IsForbidden(collection) {
		t.Errorf("the deletion of a collection got %v", collection)
	}
	other := &unstructured.Unstructured{}
	other.SetAPIVersion("v1")
	other.SetKind("Namespace")
	other.SetName(namespace)
	must(t, tryDeletion(t, other))
	changePolicy(t, policy, func(s *v1alpha1.OperationPolicySpec) { s.Freeze = nil })
	eventually(t, "a policy that holds no deletion refuses nothing", func() error {
		return tryAll(t, func(err error) error { return err })
	})
}

// tryAll judges what the API server answers to the deletion of each part of the install.
func tryAll(t *testing.T, judge func(error) error) error {
	t.Helper()
	var wrong []error
	for _, u := range needed(t) {
		if err := judge(api.Delete(t.Context(), u, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err))
		}
	}
	return errors.Join(wrong...)
}
