package envtest_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
