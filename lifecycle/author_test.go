package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// A record of another generation says nothing of the present one.
func TestAuthorOfThePresentGeneration(t *testing.T) {
	for generation, want := range map[string]string{"7": "ann", "6": "", "": "", "x": ""} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Generation: 7, Annotations: map[string]string{
			lifecycle.AnnotationAuthor: "ann", lifecycle.AnnotationAuthorGeneration: generation,
		}}}
		if got := lifecycle.AuthorOf(obj); got != want {
			t.Errorf("generation %q: got %q, want %q", generation, got, want)
		}
	}
}
