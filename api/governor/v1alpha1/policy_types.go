package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperationPolicy says which steps the operator may take for a set of objects, and when. If
// several policies select an object, the stricter one has precedence, field by field. The
// status of a held object names all policies that hold it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=opol,categories=governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The policy is in effect"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`,description="Objects that the policy selects"
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.held`,description="Objects with a step that the policy holds"
// +kubebuilder:printcolumn:name="Window",type=string,JSONPath=`.status.nextWindow`,description="When the next window opens",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperationPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which steps the operator may take for which objects, and when.
	// +kubebuilder:default={}
	// +optional
	Spec OperationPolicySpec `json:"spec,omitempty"`

	// status is the observed state. The operator writes it.
	// +optional
	Status OperationPolicyStatus `json:"status,omitempty"`
}

// OperationPolicySpec selects objects and restricts their steps. A field that is not set
// restricts nothing.
type OperationPolicySpec struct {
	// selector selects the objects; if empty, all objects that the operator runs.
	// +optional
	Selector ObjectSelector `json:"selector,omitempty"`

	// windows are the maintenance windows. Only within one of them, Disruptive, Destructive and
	// Irreversible steps begin. Repairs pass, unless repairPolicy says otherwise. When a window
	// closes, a step that has begun is completed.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Windows []Window `json:"windows,omitempty"`

	// approval names the classes of steps that need an Approval.
	// +optional
	Approval *ApprovalRule `json:"approval,omitempty"`

	// freeze stops changes: while it is set, no Disruptive, Destructive or Irreversible step begins,
	// and no Routine step that a change of the spec needs. Repairs pass, unless repairPolicy says
	// otherwise.
	// +optional
	Freeze *Freeze `json:"freeze,omitempty"`

	// repairPolicy says whether windows, approval and freeze also hold repairs: Pass or Hold.
	// +kubebuilder:default=Pass
	// +optional
	RepairPolicy RepairPolicy `json:"repairPolicy,omitempty"`

	// budget limits how many of the selected objects are disrupted at the same time.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// canary applies a change to the selected objects in waves.
	// +optional
	Canary *Canary `json:"canary,omitempty"`

	// nodeMaintenance names nodes in planned maintenance. A member of a selected object
	// that is on such a node, or has its volume there, is waited for rather than replaced,
	// as long as the policy names the node. Cordoned nodes need not be named.
	// +optional
	NodeMaintenance *NodeMaintenance `json:"nodeMaintenance,omitempty"`

	// driftPolicy says what happens when another user or controller changes an object that the
	// operator provides: Repair, the default, or Report.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// onFailure says what happens when a change fails. Halt leaves the change where it is, for a
	// person to look at. Rollback returns to the last spec that worked, if the way back needs no
	// Irreversible step. The default is Halt. If several policies set it, Halt has precedence.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// paused makes the operator only observe the selected objects: it writes only their status, and
	// reports drift there.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ObjectSelector selects the objects that match all of its fields.
type ObjectSelector struct {
	// kinds are names of kinds, as EtcdCluster or EtcdCluster.etcd.database.coreos.com; all if empty.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=300
	// +listType=set
	// +optional
	Kinds []string `json:"kinds,omitempty"`

	// namespaces are names of namespaces; all if empty.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector selects namespaces by their labels; all if empty. A namespace must match this
	// and the field namespaces. If the operator cannot read the labels of namespaces, the condition
	// Ready says so. Then every namespace matches for what holds steps, and none for driftPolicy
	// Report, onFailure Rollback and nodeMaintenance.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// labelSelector that the object must have; any if empty.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Window is a recurring maintenance window.
type Window struct {
	// schedule says when the window opens, in the five fields of cron (minute hour day month
	// weekday), e.g. "0 2 * * 6", or as @daily, @weekly…
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@every')",message="@every is no time of the day: use five fields (minute hour day month weekday) or @daily, @weekly, @monthly"
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="put the time zone into timeZone"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('@') || self.matches('^ *([^ ]+ +){4}[^ ]+ *$')",message="schedule must have five fields, minute hour day month weekday, e.g. \"0 2 * * 6\""
	// +required
	Schedule string `json:"schedule"`

	// duration is how long the window stays open, at least one minute, e.g. "3h". It is elapsed time:
	// a change of clocks makes the window neither longer nor shorter.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="duration must be from 1m to 168h"
	// +required
	Duration metav1.Duration `json:"duration"`

	// timeZone is the time zone of the schedule, e.g. Europe/Zurich. A time that does not exist on
	// the day when clocks go forward is taken an hour later; a time that exists twice is taken once.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// StepClass says how much a step can disturb.
//
// +kubebuilder:validation:Enum=Disruptive;Destructive;Irreversible
type StepClass string

// ApprovalRule says which steps need an Approval, and by which users.
type ApprovalRule struct {
	// classes are classes of steps. A step of these classes waits for an Approval of the plan that
	// contains it.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	// +required
	Classes []StepClass `json:"classes"`

	// approver says which of the users with the right to create Approvals may approve. OtherUser
	// accepts no approval by the author of the change: the user in the annotation governor.dev/author
	// of the object's current generation. If the author is unknown, it accepts no approval. The
	// default is AnyUser.
	// +kubebuilder:default=AnyUser
	// +optional
	Approver ApproverRule `json:"approver,omitempty"`
}

// ApproverRule says which users may approve a change.
//
// +kubebuilder:validation:Enum=AnyUser;OtherUser
type ApproverRule string

const (
	// ApproverAnyUser accepts an approval by every user who may create one.
	ApproverAnyUser ApproverRule = "AnyUser"
	// ApproverOtherUser accepts no approval by the author of the change.
	ApproverOtherUser ApproverRule = "OtherUser"
)

// Freeze stops changes, for a reason and until a time.
type Freeze struct {
	// reason is the reason for the freeze. The status of each object with a held change shows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Reason string `json:"reason"`

	// until is when the freeze ends. Without it, the freeze ends when it is removed.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// RepairPolicy says whether policies hold repairs.
//
// +kubebuilder:validation:Enum=Pass;Hold
type RepairPolicy string

const (
	// RepairPolicyPass means that repairs begin at any time.
	RepairPolicyPass RepairPolicy = "Pass"
	// RepairPolicyHold means that repairs wait as changes of the spec do.
	RepairPolicyHold RepairPolicy = "Hold"
)

// Budget limits how many objects are disrupted at the same time.
//
// +kubebuilder:validation:XValidation:rule="self.scope == 'Label' ? (has(self.label) && size(self.label) > 0) : (!has(self.label) || size(self.label) == 0)",message="label must name a label key with scope: Label, and must not be set otherwise"
type Budget struct {
	// maxDisrupted is how many of the objects may be disrupted at the same time.
	// +kubebuilder:validation:Minimum=1
	// +required
	MaxDisrupted int32 `json:"maxDisrupted"`

	// scope says what the limit applies to: all selected objects together (Fleet), the objects of
	// each namespace (Namespace), or the objects with the same value of a label (Label).
	// +kubebuilder:default=Fleet
	// +optional
	Scope BudgetScope `json:"scope,omitempty"`

	// label is the label key for scope: Label, e.g. topology.kubernetes.io/zone.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Label string `json:"label,omitempty"`
}

// BudgetScope says what the limit of a budget applies to.
//
// +kubebuilder:validation:Enum=Fleet;Namespace;Label
type BudgetScope string

const (
	// BudgetScopeFleet limits all selected objects together.
	BudgetScopeFleet BudgetScope = "Fleet"
	// BudgetScopeNamespace limits the objects of each namespace.
	BudgetScopeNamespace BudgetScope = "Namespace"
	// BudgetScopeLabel limits the objects with the same value of a label.
	BudgetScopeLabel BudgetScope = "Label"
)

// Canary applies changes to the objects in waves. A wave begins when every object of the
// earlier waves has been as declared for the soak time. The change halts while any of them is
// not ready.
type Canary struct {
	// waves are the waves before the last one. The last wave contains all other selected objects.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	Waves []Wave `json:"waves"`

	// soak is how long each object of a wave must be as declared before the next wave begins.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h')",message="soak must be from 0s to 720h"
	// +required
	Soak metav1.Duration `json:"soak"`
}

// Wave is a part of the selected objects.
type Wave struct {
	// name of the wave, e.g. staging.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// labelSelector of its objects. An object that several waves select belongs to the first.
	// +required
	LabelSelector metav1.LabelSelector `json:"labelSelector"`
}

// NodeMaintenance names nodes by their names, by their labels, or both.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodes) || has(self.selector)",message="spec.nodeMaintenance must name nodes, by nodes or by selector"
type NodeMaintenance struct {
	// nodes are names of nodes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// selector selects nodes by their labels. A node whose Node object is gone has none.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="spec.nodeMaintenance.selector must not be empty: it would select every node"
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// DriftPolicy says what happens when another user or controller changes an object that the
// operator provides.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

const (
	// DriftPolicyRepair restores the object.
	DriftPolicyRepair DriftPolicy = "Repair"
	// DriftPolicyReport leaves the object as it is. The status says what was changed, when, and by
	// which field manager. Changes of the custom resource's spec are still applied.
	DriftPolicyReport DriftPolicy = "Report"
)

// FailurePolicy says what happens when a change fails.
//
// +kubebuilder:validation:Enum=Halt;Rollback
type FailurePolicy string

const (
	// FailurePolicyHalt leaves it where it is.
	FailurePolicyHalt FailurePolicy = "Halt"
	// FailurePolicyRollback returns to the last spec that worked.
	FailurePolicyRollback FailurePolicy = "Rollback"
)

// OperationPolicyStatus is the observed state.
type OperationPolicyStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selected is the number of objects that the policy selects.
	// +optional
	Selected int32 `json:"selected"`

	// held is the number of selected objects with a step that the policy holds.
	// +optional
	Held int32 `json:"held"`

	// nextWindow is when the next window opens, or "open" and the time at which the window closes.
	// +optional
	NextWindow string `json:"nextWindow,omitempty"`

	// conditions has Ready, which is true if the policy is in effect. SelectsNothing and Conflicting
	// are present when they are true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OperationPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type OperationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperationPolicy `json:"items"`
}
