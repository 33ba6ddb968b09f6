// Package fakeapp is a small application with dangerous steps, for tests of the engine and
// the simulator. A ring is a quorum system whose members exist in two systems: the ring's
// member list, and one ConfigMap per member in Kubernetes, which stands for a pod. Every
// change touches both. An operator that dies in between leaves a state that some rule must
// recognize and complete.
package fakeapp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API version of rings.
var GroupVersion = schema.GroupVersion{Group: "ring.test.governor.dev", Version: "v1"}

// AddToScheme registers the kinds of the ring.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Ring{}, &RingList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Ring is the custom resource.
type Ring struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec is the desired state.
type Spec struct {
	Size int `json:"size"`
	// Secure adds a certificate authority, and certificates for the members and their
	// clients.
	Secure bool `json:"secure,omitempty"`
	// Disk can only grow; the CRD enforces it.
	Disk int `json:"disk,omitempty"`
	// Once is immutable after it is set. The planner does not know that.
	Once string `json:"once,omitempty"`
	// Mood makes the planner misbehave: "panic" panics, "fail" fails to render the
	// resources, "broken" is a failed change, and "mad" is a change that may have failed.
	Mood string `json:"mood,omitempty"`
}

// Status is the observed state.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Members            []string           `json:"members,omitempty"`
}

// RingList is a list of rings.
type RingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Ring `json:"items"`
}

// StatusFields implements lifecycle.Resource.
func (r *Ring) StatusFields() (*int64, *[]metav1.Condition) {
	return &r.Status.ObservedGeneration, &r.Status.Conditions
}

// DeepCopyObject implements runtime.Object.
func (r *Ring) DeepCopyObject() runtime.Object {
	out := *r
	out.ObjectMeta = *r.ObjectMeta.DeepCopy() //nolint:staticcheck // r itself has no DeepCopy of its own
	out.Status.Conditions = append([]metav1.Condition(nil), r.Status.Conditions...)
	out.Status.Members = append([]string(nil), r.Status.Members...)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *RingList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Ring))
	}
	return &out
}
