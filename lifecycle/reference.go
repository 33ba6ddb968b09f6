package lifecycle

import "k8s.io/apimachinery/pkg/runtime/schema"

// Reference names an object that a custom resource uses and does not own, such as a Secret of
// the user. Governor watches the metadata of its kind, and a change of the object reconciles
// every custom resource that refers to it.
type Reference struct {
	Kind schema.GroupVersionKind
	// Namespace is empty for a kind without namespaces.
	Namespace, Name string
}
