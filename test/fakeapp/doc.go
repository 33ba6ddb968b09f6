// Package fakeapp is a small application with dangerous steps, for testing the
// engine and the simulator. A ring is a quorum system whose members live in two
// systems: the ring's own member list, and one ConfigMap each in Kubernetes, which
// stands for a pod. Every change touches both, so an operator that dies between
// the two leaves a state that some rule must recognise and finish.
package fakeapp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the ring's API.
var GroupVersion = schema.GroupVersion{Group: "ring.test.governor.dev", Version: "v1"}

// AddToScheme registers the ring's kinds.
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

// Spec is what the user wants.
type Spec struct {
	Size int `json:"size"`
	// Secure gives the ring an authority, and certificates for its members and their
	// clients.
	Secure bool `json:"secure,omitempty"`
	// Disk only grows, as its definition has it.
	Disk int `json:"disk,omitempty"`
	// Once cannot be changed when it is set, which the planner does not know.
	Once string `json:"once,omitempty"`
	// Mood makes the planner misbehave: "panic" panics, "fail" cannot render, "broken" is a
	// change that fails, "mad" one that may have failed.
	Mood string `json:"mood,omitempty"`
}

// Status is what is.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Members            []string           `json:"members,omitempty"`
}

// RingList is a list of rings.
type RingList struct { //nolint:revive // the API machinery wants this name
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Ring `json:"items"`
}

// StatusFields implements lifecycle.Custom.
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
