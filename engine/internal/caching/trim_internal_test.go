package caching

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What drivers read of a pod stays, what only takes memory goes.
func TestTrim(t *testing.T) {
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}}
	identity := metav1.ObjectMeta{Name: "p", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}}
	managed := identity
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	full := corev1.Container{
		Name: "c", Image: "i:1", Env: []corev1.EnvVar{{Name: "E"}}, Args: []string{"a"},
		VolumeMounts: []corev1.VolumeMount{{Name: "v"}}, ReadinessProbe: &corev1.Probe{},
	}
	outline := corev1.Container{Name: "c", Image: "i:1"}
	data := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "p-data"},
	}}
	cases := map[string]struct {
		reason    string
		obj, want any
	}{
		"Pod": {
			"a pod is what runs where, and how it is",
			&corev1.Pod{ObjectMeta: managed, Status: status, Spec: corev1.PodSpec{
				NodeName: "n", Containers: []corev1.Container{full}, InitContainers: []corev1.Container{full},
				Volumes: []corev1.Volume{{Name: "v"}, data}, Tolerations: []corev1.Toleration{{Key: "t"}},
			}},
			&corev1.Pod{ObjectMeta: identity, Status: status, Spec: corev1.PodSpec{
				NodeName: "n", Containers: []corev1.Container{outline}, InitContainers: []corev1.Container{outline},
				Volumes: []corev1.Volume{data},
			}},
		},
		"Other": {
			"of other kinds all but the bookkeeping may matter",
			&corev1.ConfigMap{ObjectMeta: managed, Data: map[string]string{"k": "v"}},
			&corev1.ConfigMap{ObjectMeta: identity, Data: map[string]string{"k": "v"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Trim(c.obj)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v %s", c.reason, err, diff)
			}
		})
	}
}
