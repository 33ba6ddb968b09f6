package podset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
)

func pause(edit func(*corev1.PodSpec)) *appv1.PodSet {
	s := set(1)
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}
	if edit != nil {
		edit(&s.Spec.Template.Spec)
	}
	return s
}

// These values are stored on the pods of users. A different value would replace every pod
// of every user that upgrades the operator.
func TestFingerprintsAreStable(t *testing.T) {
	emptyDir := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	hostPath := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}
	got := map[string]string{
		"default":  podset.Fingerprint(pause(nil)),
		"replicas": podset.Fingerprint(func() *appv1.PodSet { s := pause(nil); s.Spec.Replicas = 9; return s }()),
		"emptyDir": podset.Fingerprint(pause(func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{emptyDir} })),
		"hostPath": podset.Fingerprint(pause(func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{hostPath} })),
	}
	want := map[string]string{
		"default": "21pqyoyyjbj0i", "replicas": "21pqyoyyjbj0i", "emptyDir": "14q10y9p0elm8", "hostPath": "1atyun17quxzk",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPodFor(t *testing.T) {
	want := pause(nil)
	want.Spec.Template.Metadata = appv1.PodMetadata{
		Labels:      map[string]string{"tier": "front", "governor.dev/app": "mine"},
		Annotations: map[string]string{"note": "x"},
	}
	p := podset.PodFor(want, podset.Fingerprint(want), "web-4", 2)
	if diff := cmp.Diff(metav1.ObjectMeta{
		Namespace: "ns", Name: "web-4",
		Labels: map[string]string{
			"tier": "front", "governor.dev/app": "podset", "app.kubernetes.io/instance": "web",
			"governor.dev/template": podset.Fingerprint(want),
		},
		Annotations: map[string]string{"note": "x", "governor.dev/attempt": "2"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "app.example.com/v1alpha1", Kind: "PodSet", Name: "web", UID: "set", Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}, p.ObjectMeta); diff != "" {
		t.Error(diff)
	}
	if len(want.Spec.Template.Metadata.Annotations) != 1 {
		t.Error("the declared template was changed")
	}
}
