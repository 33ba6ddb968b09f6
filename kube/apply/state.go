package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// stateOf tells two versions of an object apart unless only the status differs; it is
// empty if that cannot be told. It is made from the generation, which the API server
// counts up when anything but metadata and status changes, and from the metadata that is
// compared: what others own may be taken from us without another change.
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
