package envtest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// An object of the user that a custom resource uses wakes it at once, also if it does not exist at first.
func TestChangeOfReferencedObjectReconciles(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	r := newRing(t, namespace, "r", 1)
	uses := `{"metadata":{"annotations":{"` + fakeapp.AnnotationSecret + `":"own"}}}`
	must(t, api.Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(uses))))
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}
	acts := map[string]func() error{
		"1 it is created": func() error { return api.Create(t.Context(), secret) },
		"2 it is changed": func() error {
			secret.Data = map[string][]byte{"tls.crt": []byte("renewed")}
			return api.Update(t.Context(), secret)
		},
		"3 it is deleted": func() error { return api.Delete(t.Context(), secret) },
	}
	for _, name := range []string{"1 it is created", "2 it is changed", "3 it is deleted"} {
		before := op.lists.Observed(r.UID)
		must(t, acts[name]())
		eventually(t, name, func() error {
			if now := op.lists.Observed(r.UID); now <= before {
				return fmt.Errorf("%d observations, as before", now)
			}
			return nil
		})
	}
}

// referring makes the ring refer to the objects.
func referring(t *testing.T, r *fakeapp.Ring, refs ...lifecycle.Reference) {
	t.Helper()
	raw, err := json.Marshal(refs)
	must(t, err)
	r.SetAnnotations(map[string]string{fakeapp.AnnotationReferences: string(raw)})
	must(t, api.Update(t.Context(), r))
}

// A custom resource refers to objects of any kind by name, also in another namespace, and by
// label, in the namespaces that it selects. Each change wakes it, and no change of another object.
func TestReferencesOfAnyKindAcrossNamespaces(t *testing.T) {
	installRings(t)
	namespace, team, other := newNamespace(t), newNamespace(t), newNamespace(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}
	must(t, api.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"monitored":"yes"}}}`))))
	op := startOperator(t, namespace, func(_ *ctrl.Options, o *engine.Options) { o.Namespaces = []string{namespace, team, other} })
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	byName, byLabel := newRing(t, namespace, "by-name", 1), newRing(t, namespace, "by-label", 1)
	referring(t, byName,
		lifecycle.Reference{Kind: configMap, Namespace: team, Name: "shared"},
		lifecycle.Reference{Kind: appv1.GroupVersion.WithKind("PodSet"), Namespace: namespace, Name: "named"})
	referring(t, byLabel, lifecycle.Reference{
		Kind: configMap, Selector: web, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"monitored": "yes"}},
	})
	for _, name := range []string{"by-name", "by-label"} {
		ringReaches(t, namespace, name, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	}
	labeled := func(in, name string, of map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: of}}
	}
	wakes := func(what string, who *fakeapp.Ring, act func() error) {
		t.Helper()
		before := op.lists.Observed(who.UID)
		must(t, act())
		eventually(t, what, func() error {
			if now := op.lists.Observed(who.UID); now <= before {
				return fmt.Errorf("%d observations, as before", now)
			}
			return nil
		})
	}
	shared := labeled(team, "shared", nil)
	wakes("an object in another namespace is created", byName, func() error { return api.Create(t.Context(), shared) })
	wakes("a custom resource of another application is created", byName, func() error {
		set := childSet("a:1")
		set.Namespace, set.Name, set.Spec.Replicas = namespace, "named", 0
		return api.Create(t.Context(), set)
	})
	selected := labeled(team, "selected", web.MatchLabels)
	wakes("a selected object is created", byLabel, func() error { return api.Create(t.Context(), selected) })
	quiet := op.lists.Observed(byLabel.UID)
	must(t, api.Create(t.Context(), labeled(team, "unlabeled", nil)))
	must(t, api.Create(t.Context(), labeled(other, "elsewhere", web.MatchLabels)))
	wakes("a change that only the other ring hears", byName, func() error {
		shared.Data = map[string]string{"k": "v"}
		return api.Update(t.Context(), shared)
	})
	if now := op.lists.Observed(byLabel.UID); now != quiet {
		t.Errorf("objects that are not selected caused %d observations", now-quiet)
	}
	wakes("the namespace is selected", byLabel, func() error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}
		return api.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"monitored":"yes"}}}`)))
	})
	wakes("the label is removed", byLabel, func() error {
		return api.Patch(t.Context(), selected, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`)))
	})
}
