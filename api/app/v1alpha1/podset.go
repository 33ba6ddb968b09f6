package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodSet is a number of pods made from one template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=ps,categories=governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Available pods and wanted pods"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Present",type=integer,JSONPath=`.status.replicas`,priority=1,description="Number of pods"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,priority=1,description="Pods that were made from the present template"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 57",message="metadata.name must be at most 57 characters long: the pods are named after it, with a number"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must have only small letters, digits and '-': it is part of the pods' host names and the value of a label"
type PodSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What you want.
	// +kubebuilder:default={}
	Spec PodSetSpec `json:"spec,omitempty"`

	// What is, written by the operator.
	// +optional
	Status PodSetStatus `json:"status,omitempty"`
}

// PodSetSpec is the wanted state.
type PodSetSpec struct {
	// Number of pods. 0 keeps the object without any pod.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	// +optional
	Replicas int32 `json:"replicas"`

	// What each pod is made from. When it changes, pods are replaced, see maxUnavailable.
	// +kubebuilder:default={}
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// How many of the pods may be away at a time because their template changed: a
	// number, or a part of the replicas such as "25%", rounded down. One always may.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 5000 : self.matches('^([1-9][0-9]?|100)%$')",message="spec.maxUnavailable must be a number from 1 to 5000, or a percentage from 1% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// True makes the operator observe only: it creates and deletes nothing.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// PodTemplate is what a pod is made from.
type PodTemplate struct {
	// Labels and annotations of each pod.
	// +optional
	Metadata PodMetadata `json:"metadata,omitzero"`

	// The pod. It may end: ended pods are removed and replaced.
	// +kubebuilder:default={containers: {{name: "pause", image: "registry.k8s.io/pause:3.10"}}}
	// +optional
	Spec corev1.PodSpec `json:"spec,omitzero"`
}

// PodMetadata is what a pod is labelled with.
type PodMetadata struct {
	// Labels to add. Those that the operator sets win.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSetStatus is the observed state. Pods that are being deleted, and pods that have
// ended, are not counted.
type PodSetStatus struct {
	// Generation of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready, Reconciling and Stalled as in every kind of Governor; Available: as many
	// pods are available as maxUnavailable promises; Degraded: fewer than wanted.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Available pods and wanted pods, such as "2/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// Names of the pods, sorted; of more than 500 pods, the first 500. The number of all is in replicas.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	// +optional
	PodNames []string `json:"podNames,omitempty"`

	// Number of pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// Number of pods that are ready.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// Number of pods that were made from the present template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// Label selector of the pods, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// StatusFields implements lifecycle.Resource.
func (p *PodSet) StatusFields() (*int64, *[]metav1.Condition) {
	return &p.Status.ObservedGeneration, &p.Status.Conditions
}

// IsPaused reports whether spec.paused is set.
func (p *PodSet) IsPaused() bool { return p.Spec.Paused }

// PodSetList is a list of pod sets.
//
// +kubebuilder:object:root=true
type PodSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The pod sets.
	Items []PodSet `json:"items"`
}
