package rollback

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNoteOf: with a note that no rollback writes, the API server would refuse the status.
func TestNoteOf(t *testing.T) {
	for name, c := range map[string]struct {
		note string
		ok   bool
	}{
		"Written":  {`{"failed":2,"to":1,"reason":"ImagePullBackOff"}`, true},
		"None":     {"", false},
		"Reason":   {`{"reason":"two words"}`, false},
		"NoReason": {`{"failed":2}`, false},
		"Long":     {`{"reason":"A","kept":["` + strings.Repeat("x", 40_000) + `"]}`, false},
		"Reasons":  {`{"reason":"` + strings.Repeat("A", 1025) + `"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.ConfigMap{}
			obj.Annotations = map[string]string{annotationRolledBack: c.note}
			if n, ok := NoteOf(obj); ok != c.ok || !ok && n.Reason != "" {
				t.Errorf("%+v, %v", n, ok)
			}
		})
	}
}
