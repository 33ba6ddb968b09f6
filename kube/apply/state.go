package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// stateOf returns a digest that is equal for two versions of an object if only the status
// differs. It is empty if the object has no generation. It covers the generation, which
// the API server increments when anything but metadata and status changes, and the
// compared metadata. That includes the managed fields: a change of ownership changes
// nothing else.
func stateOf(obj client.Object) string {
	if obj.GetGeneration() == 0 {
		return ""
	}
	var fields []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" {
			fields = append(fields, entry)
		}
	}
	return lifecycle.Digest([]any{
		obj.GetGeneration(), obj.GetLabels(), obj.GetAnnotations(), obj.GetOwnerReferences(), obj.GetFinalizers(), fields,
	})
}
