package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Approval is somebody's word that the operator may carry out one plan for one object.
// It is bound to exactly the steps that it names, and cannot be changed; deleting it
// revokes it. `kubectl governor approve` makes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=appr,categories=governor
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="an Approval cannot be changed: delete it, which revokes it, and approve again"
type Approval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is approved, by whom, until when.
	Spec ApprovalSpec `json:"spec"`

	// What is, written by the operator.
	// +optional
	Status ApprovalStatus `json:"status,omitempty"`
}

// ApprovalSpec is what is approved, by whom, until when.
type ApprovalSpec struct {
	// The object, in the Approval's namespace.
	TargetRef ApprovedObject `json:"targetRef"`

	// The plan: the steps as the preview has them, in their order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	Steps []ApprovedStep `json:"steps"`

	// User name of who approves. The API server lets only that user say so.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Approver string `json:"approver"`

	// Until when a step may begin.
	ExpirationTime metav1.Time `json:"expirationTime"`

	// Why, for the history.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ApprovedObject names one object at one generation.
type ApprovedObject struct {
	// API group of its kind.
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// Its kind.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Its name.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Its identity: an object of the same name made later is another.
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
	// The generation whose plan it is: a later change of the spec is another plan.
	Generation int64 `json:"generation"`
}

// ApprovedStep is one step of the plan.
type ApprovedStep struct {
	// Verb, e.g. Restart.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// What it is done to, e.g. etcd-2.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Target string `json:"target,omitempty"`
	// How much it can hurt.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Class string `json:"class,omitempty"`
	// The values that it needs beyond the target.
	// +optional
	Args map[string]string `json:"args,omitempty"`
}

// ApprovalStatus is the observed state.
type ApprovalStatus struct {
	// Valid is true while the steps may be taken; else its reason says why not: Expired,
	// PlanChanged, GenerationChanged, ObjectGone, Done, ApproverIsAuthor, AuthorUnknown.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ApprovalList is a list of approvals.
//
// +kubebuilder:object:root=true
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Approval `json:"items"`
}
