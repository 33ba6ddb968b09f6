package envtest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// A plan does not promise that an image exists which no node has pulled.
func TestPlanNamesImagesThatNoPodHasRun(t *testing.T) {
	a := previews(t, 1)
	newMemcached(t, a.namespace, "m", 1)
	playKubernetes(t, a.namespace, "m")
	pod, err := get(t, &corev1.Pod{}, a.namespace, "m-c")
	must(t, err)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, ImageID: "sha256:1"}}
	must(t, api.Status().Update(t.Context(), pod))
	reaches(t, a.namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	const unknown = "Whether the image memcached:1.6.999 exists and can be pulled: no pod that Governor watches has run it."
	expect(t, a.namespace, 0, []string{unknown}, "plan", "memcached/m", "--set", "spec.image=memcached:1.6.999")
	if said := expect(t, a.namespace, 0, nil, "plan", "memcached/m", "--set", "spec.size=2"); strings.Contains(said, "Whether the image") {
		t.Errorf("a node has run the present image: %s", said)
	}
}
