package envtest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// An immutable object whose declaration the API server would also refuse to create stays.
func TestImmutableObjectOutlivesAnInvalidDeclaration(t *testing.T) {
	applier, owner := configured(t)
	frozen := func(value string) []lifecycle.Object {
		c := object("c", value, nil)
		c.Immutable = new(true)
		return []lifecycle.Object{c}
	}
	eventually(t, "the cache shows it", func() error {
		changes, err := applier.Apply(t.Context(), owner, frozen("first"))
		if err == nil && len(changes) > 0 {
			err = errNotYet
		}
		return err
	})
	c, err := get(t, &corev1.ConfigMap{}, owner.GetNamespace(), "c")
	must(t, err)
	if _, err := applier.Apply(t.Context(), owner, frozen(strings.Repeat("x", corev1.MaxSecretSize+1))); !apierrors.IsInvalid(err) {
		t.Errorf("the declaration is not refused: %v", err)
	}
	if is, err := get(t, &corev1.ConfigMap{}, owner.GetNamespace(), "c"); err != nil || is.UID != c.UID {
		t.Errorf("the object is gone: %v", err)
	}
}
