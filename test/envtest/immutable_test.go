package envtest_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// The content of an immutable object cannot be changed. The operator deletes and recreates
// its own, and leaves an object of another owner alone.
func TestOwnImmutableObjectsAreRecreated(t *testing.T) {
	applier, owner := configured(t)
	secret := func(value string) lifecycle.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"key": []byte(value)}}
	}
	_, err := applier.Apply(t.Context(), owner, []lifecycle.Object{secret("first"), object("c", "first", nil)})
	must(t, err)
	frozen := `{"immutable":true}`
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: "s"}}
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: "c"}}
	for _, obj := range []client.Object{s, c} {
		must(t, api.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(frozen))))
	}
	eventually(t, "both have what is declared now", func() error {
		if _, err := applier.Apply(t.Context(), owner, []lifecycle.Object{secret("second"), object("c", "second", nil)}); err != nil {
			return err // the cache may be older than the patch
		}
		is, err := get(t, &corev1.Secret{}, owner.GetNamespace(), "s")
		must(t, err)
		also, err := get(t, &corev1.ConfigMap{}, owner.GetNamespace(), "c")
		must(t, err)
		if string(is.Data["key"]) != "second" || also.Data["key"] != "second" || is.UID == s.UID || is.Immutable != nil {
			return fmt.Errorf("they have %q and %q", is.Data["key"], also.Data["key"])
		}
		return nil
	})
}
