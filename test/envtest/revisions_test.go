package envtest_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/revision"
)

// revisionIn is a ControllerRevision as the operator writes it, or as one that another wrote.
func revisionIn(namespace, name string, labels map[string]string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "cache.example.com/v1alpha1", Kind: "Memcached", Name: "m", UID: "1", Controller: new(true)}},
		},
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, Revision: 1,
	}
}

// A rollback declares what a revision has, so only the operator writes one.
func TestUsersForgeNoRevision(t *testing.T) {
	namespace := newNamespace(t)
	grant(t, namespace, "revisions", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"*"}}, "bob", "ann")
	grant(t, namespace, "bypass", rbacv1.PolicyRule{APIGroups: []string{"governor.dev"}, Resources: []string{"operationpolicies"}, Verbs: []string{"bypass"}}, "ann")
	applied(t, "../../config/manager/revision.yaml")
	labels := revision.Selector("Memcached", "m")
	eventually(t, "the policy is in force", func() error {
		err := asUser(t, "bob").Create(t.Context(), revisionIn(namespace, "forged", labels), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("it is created: %w", err)
	})
	must(t, asUser(t, "bob").Create(t.Context(), revisionIn(namespace, "other", nil)))
	must(t, asUser(t, "ann").Create(t.Context(), revisionIn(namespace, "restored", labels)))
	ofSet := revisionIn(namespace, "of-a-set", labels) // it has the labels of the set's pods, which users may choose
	ofSet.OwnerReferences[0].APIVersion, ofSet.OwnerReferences[0].Kind = "apps/v1", "StatefulSet"
	must(t, asUser(t, "bob").Create(t.Context(), ofSet))
	for name, edit := range map[string]func(*appsv1.ControllerRevision){
		"Settled": func(c *appsv1.ControllerRevision) {
			c.Annotations = map[string]string{revision.AnnotationSettled: "true"}
		},
		"Number": func(c *appsv1.ControllerRevision) { c.Revision = 7 },
		"Labels": func(c *appsv1.ControllerRevision) { c.Labels = nil },
		"Owner":  func(c *appsv1.ControllerRevision) { c.OwnerReferences[0].UID = "2" },
	} {
		t.Run(name, func(t *testing.T) {
			if err := editRevision(t, namespace, "restored", edit); !apierrors.IsForbidden(err) {
				t.Errorf("the edit is not refused: %v", err)
			}
		})
	}
	if err := editRevision(t, namespace, "other", func(c *appsv1.ControllerRevision) { c.Labels = labels }); !apierrors.IsForbidden(err) {
		t.Errorf("the label of another one's revision is not refused: %v", err)
	}
	must(t, editRevision(t, namespace, "restored", func(c *appsv1.ControllerRevision) { c.OwnerReferences = nil })) // as the garbage collector orphans
}

// editRevision edits the revision as bob.
func editRevision(t *testing.T, namespace, name string, edit func(*appsv1.ControllerRevision)) error {
	t.Helper()
	c, err := get(t, &appsv1.ControllerRevision{}, namespace, name)
	must(t, err)
	edit(c)
	return asUser(t, "bob").Update(t.Context(), c)
}
