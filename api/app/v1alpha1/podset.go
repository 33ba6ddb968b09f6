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
// +kubebuilder:resource:shortName=pset,categories=governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Available pods and desired pods"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Present",type=integer,JSONPath=`.status.replicas`,priority=1,description="Number of pods"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,priority=1,description="Pods that have the current template"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 57",message="metadata.name must be at most 57 characters long: the pods are named after it, with a number"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must have only small letters, digits and '-': it is part of the pods' host names and the value of a label"
type PodSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +kubebuilder:default={}
	// +optional
	Spec PodSetSpec `json:"spec,omitempty"`

	// status is the observed state. The operator writes it.
	// +optional
	Status PodSetStatus `json:"status,omitempty"`
}

// PodSetSpec is the desired state.
type PodSetSpec struct {
	// replicas is the desired number of pods. With 0, the object stays and has no pod.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	// +optional
	Replicas int32 `json:"replicas"`

	// template describes each pod. When it changes, the operator replaces the pods, at most
	// maxUnavailable of them at a time.
	// +kubebuilder:default={}
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// maxUnavailable is how many pods may be unavailable at a time because their template changed: a
	// number, or a percentage of replicas such as "25%", rounded down but at least one.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 5000 : self.matches('^([1-9][0-9]?|100)%$')",message="spec.maxUnavailable must be a number from 1 to 5000, or a percentage from 1% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// paused makes the operator only observe: it creates and deletes nothing.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// PodTemplate describes each pod.
type PodTemplate struct {
	// metadata contains the labels and annotations of each pod.
	// +optional
	Metadata PodMetadata `json:"metadata,omitzero"`

	// spec is the spec of each pod. A pod may end: the operator removes and replaces it.
	// +kubebuilder:default={containers: {{name: "pause", image: "registry.k8s.io/pause:3.10"}}}
	// +optional
	Spec corev1.PodSpec `json:"spec,omitzero"`
}

// PodMetadata contains labels and annotations for each pod.
type PodMetadata struct {
	// labels to add. The labels that the operator sets have precedence.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSetStatus is the observed state. Pods that are being deleted, and pods that have
// ended, are not counted.
type PodSetStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled as in every kind of Governor; Available: at least
	// as many pods are available as maxUnavailable guarantees; Degraded: fewer pods are available
	// than desired.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ready is the number of available pods and the number of desired pods, such as "2/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// podNames are the names of the pods, sorted; of more than 500 pods, 500 of them. The total is
	// in replicas.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	// +optional
	PodNames []string `json:"podNames,omitempty"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// availableReplicas is the number of pods that are ready.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of pods that have the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// selector is the label selector of the pods, for autoscalers.
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
