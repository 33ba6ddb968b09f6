package caching

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A user who may write in a namespace fills no memory of the operator with the content of objects that have its label.
func TestTrimLarge(t *testing.T) {
	small, large := strings.Repeat("x", 1000), strings.Repeat("x", maxKept+1)
	noted := func(text string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{"a": text}}
	}
	for name, c := range map[string]struct {
		obj  any
		kept bool
	}{
		"ConfigMap":       {&corev1.ConfigMap{ObjectMeta: noted(small), Data: map[string]string{"k": small}}, true},
		"LargeConfigMap":  {&corev1.ConfigMap{Data: map[string]string{"k": large}}, false},
		"BinaryConfigMap": {&corev1.ConfigMap{BinaryData: map[string][]byte{"k": []byte(large)}}, false},
		"NotedConfigMap":  {&corev1.ConfigMap{ObjectMeta: noted(large)}, false},
		"Secret":          {&corev1.Secret{Data: map[string][]byte{"k": []byte(small)}}, true},
		"LargeSecret":     {&corev1.Secret{Data: map[string][]byte{"k": []byte(large)}}, false},
		"ManyKeys":        {&corev1.ConfigMap{Data: map[string]string{"a": large[:maxKept/2], "b": large[:maxKept/2]}}, false},
		"Other":           {&corev1.Service{ObjectMeta: noted(large)}, true},
	} {
		got, err := TrimLarge(c.obj)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		switch o := got.(type) {
		case *corev1.ConfigMap:
			n = length(o.Data) + length(o.BinaryData) + length(o.Annotations)
		case *corev1.Secret:
			n = length(o.Data)
		case *corev1.Service:
			n = length(o.Annotations)
		}
		if (n > 0) != c.kept {
			t.Errorf("%s: %d bytes are kept", name, n)
		}
	}
}
