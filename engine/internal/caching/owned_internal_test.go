package caching

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A user who may write in a namespace fills no memory of the operator with the content of objects that have its label, and
// what the operator itself wrote stays: an authority whose key looked lost would be replaced.
func TestTrimLarge(t *testing.T) {
	small, large := strings.Repeat("x", 1000), strings.Repeat("x", maxKept+1)
	by := func(manager string, fields string) metav1.ObjectMeta {
		return metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}}}
	}
	const ownKey = `{"f:data":{"f:ca.crt":{}}}`
	for name, c := range map[string]struct {
		obj  any
		kept []string
	}{
		"ConfigMap":       {&corev1.ConfigMap{Data: map[string]string{"k": small}}, []string{"k"}},
		"LargeConfigMap":  {&corev1.ConfigMap{Data: map[string]string{"k": large}}, nil},
		"BinaryConfigMap": {&corev1.ConfigMap{BinaryData: map[string][]byte{"k": []byte(large)}}, nil},
		"ManyKeys":        {&corev1.ConfigMap{Data: map[string]string{"a": large[:maxKept/2], "b": large[:maxKept/2]}}, []string{"b"}},
		"Secret":          {&corev1.Secret{Data: map[string][]byte{"k": []byte(small)}}, []string{"k"}},
		"LargeSecret":     {&corev1.Secret{ObjectMeta: by("kubectl", ownKey), Data: map[string][]byte{"ca.crt": []byte(large)}}, nil},
		"OwnSecret": {&corev1.Secret{ObjectMeta: by("governor", ownKey), Data: map[string][]byte{
			"ca.crt": []byte(small), "truststore.jks": []byte(large)}}, []string{"ca.crt"}},
		"UsersPassword": {&corev1.Secret{ObjectMeta: by("kubectl", `{}`), Data: map[string][]byte{
			"password": []byte(small), "truststore.jks": []byte(large)}}, []string{"password"}},
		"OwnLarge": {&corev1.Secret{ObjectMeta: by("governor", ownKey), Data: map[string][]byte{"ca.crt": []byte(large)}}, []string{"ca.crt"}},
	} {
		got, err := TrimLarge(c.obj)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		switch o := got.(type) {
		case *corev1.ConfigMap:
			keys = slices.Concat(slices.Sorted(maps.Keys(o.Data)), slices.Sorted(maps.Keys(o.BinaryData)))
		case *corev1.Secret:
			keys = slices.Sorted(maps.Keys(o.Data))
		}
		if diff := cmp.Diff(c.kept, keys); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
