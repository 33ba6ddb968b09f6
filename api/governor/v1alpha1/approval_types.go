package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Approval approves one plan for one object. It covers exactly the steps that it names, and
// cannot be changed; deleting it revokes it. `kubectl governor approve` creates one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=appr,categories=governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`,description="The steps may be taken"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].reason`,description="Reason of the condition Valid"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="an Approval cannot be changed: delete it, which revokes it, and approve again"
type Approval struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the approved steps, the approver, and the time at which the approval expires.
	// +required
	Spec ApprovalSpec `json:"spec"`

	// status is the observed state. The operator writes it.
	// +optional
	Status ApprovalStatus `json:"status,omitempty"`
}

// ApprovalSpec names the approved steps, the approver, and the time at which the approval expires.
type ApprovalSpec struct {
	// targetRef is the object, in the namespace of the Approval.
	// +required
	TargetRef ApprovedObject `json:"targetRef"`

	// steps are the approved steps, in the order of the preview.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +required
	Steps []ApprovedStep `json:"steps"`

	// approver is the user name of the approver. The API server refuses every user but the one named
	// here.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Approver string `json:"approver"`

	// expirationTime is the time after which no step may begin.
	// +required
	ExpirationTime metav1.Time `json:"expirationTime"`

	// reason is the reason for the approval. The history shows it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ApprovedObject identifies one object at one generation.
type ApprovedObject struct {
	// group is the API group of the object's kind.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Group string `json:"group"`
	// kind is the kind of the object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// name is the name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// uid is the UID of the object: a later object of the same name is another object.
	// +kubebuilder:validation:MaxLength=64
	// +required
	UID string `json:"uid"`
	// generation is the generation of the spec whose steps are approved. A later change of the spec
	// needs another approval.
	// +required
	Generation int64 `json:"generation"`
}

// ApprovedClass says how much an approved step can disturb.
//
// +kubebuilder:validation:Enum=Routine;Disruptive;Destructive;Irreversible
type ApprovedClass string

// ApprovedStep is one step of the plan.
type ApprovedStep struct {
	// name is the name of the step, e.g. Restart.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// target is the member or object that the step acts on, e.g. etcd-2.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Target string `json:"target,omitempty"`
	// class says how much the step can disturb: Routine, Disruptive, Destructive or Irreversible.
	// +optional
	Class ApprovedClass `json:"class,omitempty"`
	// args are the values that the step needs besides the target.
	// +optional
	Args map[string]string `json:"args,omitempty"`
}

// ApprovalStatus is the observed state.
type ApprovalStatus struct {
	// conditions has Valid, which is true while the steps may be taken. Otherwise its reason is
	// Expired, PlanChanged, GenerationChanged, ObjectGone, Done, ApproverIsAuthor or AuthorUnknown.
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
