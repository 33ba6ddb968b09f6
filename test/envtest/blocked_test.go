package envtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// stuck deletes the ConfigMap, which keeps a finalizer.
func stuck(t *testing.T, namespace, name string) {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	finalizers := func(list string) client.Patch {
		return client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))
	}
	must(t, api.Patch(t.Context(), c, finalizers(`["a.b/c"]`)))
	must(t, api.Delete(t.Context(), c))
	t.Cleanup(func() { _ = api.Patch(context.WithoutCancel(t.Context()), c, finalizers("null")) })
}

// losePod deletes the pod of a member of the ring, and returns the object to look for.
func losePod(t *testing.T, namespace string) client.Object {
	t.Helper()
	list := &corev1.ConfigMapList{}
	must(t, api.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{fakeapp.MemberLabel}))
	if len(list.Items) == 0 {
		t.Fatal("the ring has no pods")
	}
	must(t, api.Delete(t.Context(), &list.Items[0]))
	return &list.Items[0]
}

// An object that cannot be applied does not stop repairs that do not need it.
func TestRepairsContinueDespiteBlockedObjects(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	startOperator(t, namespace)
	newRing(t, namespace, "r", 3)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	stuck(t, namespace, "r-odd")
	ringReaches(t, namespace, "r", lifecycle.ConditionResourcesBlocked, metav1.ConditionTrue, "PreviousStillDeleting")
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionFalse, "PreviousStillDeleting")
	lost := losePod(t, namespace)
	eventually(t, "the pod is made again", func() error {
		is, err := get(t, &corev1.ConfigMap{}, namespace, lost.GetName())
		if err == nil && is.UID == lost.GetUID() {
			err = fmt.Errorf("%s is still there", is.Name)
		}
		return err
	})
}

// A plan has the repairs that go on, and ends with what cannot be provided.
func TestPlanHasRepairsDespiteBlockedObject(t *testing.T) {
	a := previews(t, 2)
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "r-odd"}}
	must(t, api.Create(t.Context(), taken))
	expect(t, a.namespace, 1, []string{"nothing will be done: NameTaken"}, "plan", "ring/r", "--set", "spec.size=3")
	expect(t, a.namespace, 0, nil, "pause", "ring/r")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	losePod(t, a.namespace)
	said := expect(t, a.namespace, 0, []string{"1. CreatePod m000000", "Then: it stops, NameTaken"}, "plan", "ring/r", "--set", "spec.size=3")
	if strings.Contains(said, "Add") {
		t.Errorf("no wish goes on: %s", said)
	}
}
