// Package enginetest has a small custom resource and an API server in memory, for the tests of the
// engine's packages.
package enginetest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// Kind is the kind of Object.
var Kind = schema.GroupVersionKind{Group: "fakes.example.com", Version: "v1", Kind: "Fake"}

// Object is a custom resource with a spec of one field.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// Spec is what a test declares.
type Spec struct {
	From string `json:"from,omitempty"`
}

// Status has what every custom resource has.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// New returns an object of that name, of its first generation.
func New(name string) *Object {
	return &Object{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u1", Generation: 1}}
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{} }

// StatusFields implements lifecycle.Resource.
func (o *Object) StatusFields() (*int64, *[]metav1.Condition) {
	return &o.Status.ObservedGeneration, &o.Status.Conditions
}

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object {
	out := *o
	return &out
}

// Scheme knows Object, policies, approvals and the built-in kinds.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(Kind, &Object{})
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// Builder builds an API server that knows these kinds.
func Builder(all ...client.Object) *fakeclient.ClientBuilder {
	return fakeclient.NewClientBuilder().WithScheme(Scheme()).WithObjects(all...)
}
