package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAuthored(t *testing.T) {
	meta := map[string]any{"name": "x"}
	cases := map[string]struct {
		reason string
		obj    client.Object
		want   map[string]any
	}{
		"EmptyStructs": {
			"unset strategy, resources and template metadata are not declared",
			&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "x"},
				Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
				}},
			},
			map[string]any{"metadata": meta, "spec": map[string]any{"template": map[string]any{
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}},
			}}},
		},
		"MeaningfulEmptiness": {
			"an empty required selector selects everything",
			&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
			map[string]any{"metadata": meta, "spec": map[string]any{"podSelector": map[string]any{}}},
		},
		"PointerToEmpty": {
			"a pointer to an empty struct was set on purpose",
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "x"},
				Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
					Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
				}}},
			},
			map[string]any{"metadata": meta, "spec": map[string]any{
				"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}},
			}},
		},
	}
	cases["Unstructured"] = struct {
		reason string
		obj    client.Object
		want   map[string]any
	}{
		"null is not set, and emptiness is",
		&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "x", "creationTimestamp": nil}, "status": map[string]any{"a": "b"},
			"spec": map[string]any{"none": nil, "empty": map[string]any{}, "list": []any{map[string]any{"none": nil, "n": int64(1)}}},
		}},
		map[string]any{"metadata": meta, "spec": map[string]any{"empty": map[string]any{}, "list": []any{map[string]any{"n": int64(1)}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := declaredFields(c.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
