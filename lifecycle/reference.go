package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference names one object, or selects objects by label, that a custom resource uses and does
// not own, such as a Secret of the user, or the ServiceMonitors of all teams. Governor watches
// the metadata of the kind in the namespaces that the operator works in. A change of such an
// object reconciles every custom resource that refers to it.
type Reference struct {
	// Kind of the objects; it needs no Go type.
	Kind schema.GroupVersionKind `json:"kind"`
	// Namespace of the objects. It is empty for a kind without namespaces. A reference with a
	// Selector selects in all namespaces if it is empty.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name,omitempty"`
	// Selector selects objects by their labels in place of Name; an empty one selects all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// NamespaceSelector selects the namespaces of the selected objects by their labels, in place
	// of Namespace. The operator needs the rights to list and watch namespaces.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}
