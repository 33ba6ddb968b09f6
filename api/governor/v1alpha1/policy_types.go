package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperationPolicy says what the operator may do to a set of objects, and when. Where
// several policies select an object the stricter wins, field by field, and both are
// named in what the object's status says.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=opol,categories=governor
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`,description="Objects that it selects"
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.held`,description="Objects with a step that it holds"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="It can be followed"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="What is wrong with it, if anything"
// +kubebuilder:printcolumn:name="Window",type=string,JSONPath=`.status.nextWindow`,description="When the next window opens",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What may be done, and when.
	// +kubebuilder:default={}
	Spec OperationPolicySpec `json:"spec,omitempty"`

	// What is, written by the operator.
	// +optional
	Status OperationPolicyStatus `json:"status,omitempty"`
}

// OperationPolicySpec says what may be done to which objects. A field that is not set
// restricts nothing.
type OperationPolicySpec struct {
	// The objects that it is about; all that the operator runs if empty.
	// +optional
	Selector ObjectSelector `json:"selector,omitempty"`

	// Only within one of these windows may steps be taken that disturb (Disruptive,
	// Destructive, Irreversible). Repairs pass, unless repairPolicy says otherwise. A step
	// that has begun is finished when its window closes.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Windows []Window `json:"windows,omitempty"`

	// Classes of steps that somebody must approve before they are taken.
	// +optional
	Approval *ApprovalRule `json:"approval,omitempty"`

	// No step that disturbs, and no routine step that a change of the spec asks for, is taken
	// while this is set. Repairs pass, unless repairPolicy says otherwise.
	// +optional
	Freeze *Freeze `json:"freeze,omitempty"`

	// Whether windows, approval and freeze hold back repairs too.
	// +kubebuilder:default=Pass
	// +optional
	RepairPolicy RepairPolicy `json:"repairPolicy,omitempty"`

	// How many of the selected objects may be under a disturbing step at once.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// Changes go over the selected objects in waves.
	// +optional
	Canary *Canary `json:"canary,omitempty"`

	// NodeMaintenance names nodes in planned maintenance. A member of a selected object
	// that is on such a node, or has its volume there, is waited for rather than replaced,
	// as long as the policy names the node. Cordoned nodes need not be named.
	// +optional
	NodeMaintenance *NodeMaintenance `json:"nodeMaintenance,omitempty"`

	// What happens when somebody changes what the operator provides; Repair unless some
	// policy says otherwise.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// What happens when a change fails: Halt leaves it where it is for a person to look
	// at; Rollback returns to the last spec that worked, if the way back takes no
	// irreversible step. It is Halt unless some policy says Rollback and none says Halt.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// True makes the operator observe the selected objects only: it writes nothing but
	// their status, and reports drift there.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ObjectSelector selects objects that fulfil all that is set.
type ObjectSelector struct {
	// Kinds, as EtcdCluster or EtcdCluster.etcd.database.coreos.com; all if empty.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=300
	// +listType=set
	// +optional
	Kinds []string `json:"kinds,omitempty"`

	// Names of namespaces; all if empty.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// LabelSelector that the object must have; any if empty.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Window is a stretch of time that comes again and again.
type Window struct {
	// When it opens, in the five fields of cron (minute hour day month weekday), e.g.
	// "0 2 * * 6", or as @daily, @weekly…
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@every')",message="@every is no time of the day: use five fields (minute hour day month weekday) or @daily, @weekly, @monthly"
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="put the time zone into timeZone"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('@') || self.matches('^ *([^ ]+ +){4}[^ ]+ *$')",message="schedule must have five fields, minute hour day month weekday, e.g. \"0 2 * * 6\""
	Schedule string `json:"schedule"`

	// How long it stays open, at least one minute, e.g. "3h". It is time that passes:
	// a night in which clocks change is not longer or shorter for it.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="duration must be from 1m to 168h"
	Duration metav1.Duration `json:"duration"`

	// Time zone of the schedule, as Europe/Zurich. A time that does not exist on the day
	// when clocks go forward is taken an hour later; one that comes twice is taken once.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// StepClass says how much a step can hurt.
//
// +kubebuilder:validation:Enum=Disruptive;Destructive;Irreversible
type StepClass string

// ApprovalRule says which steps somebody must approve.
type ApprovalRule struct {
	// The classes; a step of any of them waits for an Approval of the plan that it is
	// part of.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	Classes []StepClass `json:"classes"`

	// Approver is who may give the approval, of the users who may create Approvals. OtherUser
	// accepts no approval by the author of the change, who is the user that the annotation
	// governor.dev/author names for the object's present generation. While the author is not
	// known it accepts none. It is AnyUser unless some policy says otherwise.
	// +kubebuilder:default=AnyUser
	// +optional
	Approver ApproverRule `json:"approver,omitempty"`
}

// ApproverRule says who may approve a change.
//
// +kubebuilder:validation:Enum=AnyUser;OtherUser
type ApproverRule string

const (
	// ApproverAnyUser accepts an approval by every user who may create one.
	ApproverAnyUser ApproverRule = "AnyUser"
	// ApproverOtherUser accepts no approval by the author of the change.
	ApproverOtherUser ApproverRule = "OtherUser"
)

// Freeze says why no change is carried out, and until when.
type Freeze struct {
	// Why, for those whose change is held.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`

	// When it ends by itself; without it, when it is removed.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// RepairPolicy says whether repairs are held back.
//
// +kubebuilder:validation:Enum=Pass;Hold
type RepairPolicy string

const (
	// RepairPolicyPass means that what is broken is mended at any time.
	RepairPolicyPass RepairPolicy = "Pass"
	// RepairPolicyHold means that repairs wait as wishes do.
	RepairPolicyHold RepairPolicy = "Hold"
)

// Budget limits how many objects are disturbed at once.
//
// +kubebuilder:validation:XValidation:rule="self.scope == 'Label' ? (has(self.label) && size(self.label) > 0) : (!has(self.label) || size(self.label) == 0)",message="label must name a label key with scope: Label, and must not be set otherwise"
type Budget struct {
	// How many of the objects may be under a disturbing step at once.
	// +kubebuilder:validation:Minimum=1
	MaxDisrupted int32 `json:"maxDisrupted"`

	// Whom the number is for: all selected objects together, those of each namespace, or
	// those with the same value of a label.
	// +kubebuilder:default=Fleet
	// +kubebuilder:validation:Enum=Fleet;Namespace;Label
	// +optional
	Scope string `json:"scope,omitempty"`

	// The label, for scope: Label, e.g. topology.kubernetes.io/zone.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Label string `json:"label,omitempty"`
}

// Canary lets changes go over the objects in waves. A wave begins when every object of
// the waves before it has been as declared for the soak time. It halts while any of them
// is not well.
type Canary struct {
	// The waves before the last; the last is all other selected objects.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	Waves []Wave `json:"waves"`

	// How long every object of a wave must have been as declared.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h')",message="soak must be from 0s to 720h"
	Soak metav1.Duration `json:"soak"`
}

// Wave is a part of the selected objects.
type Wave struct {
	// Name of the wave, e.g. staging.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// LabelSelector of its objects. An object that several waves select belongs to the first.
	LabelSelector metav1.LabelSelector `json:"labelSelector"`
}

// NodeMaintenance names nodes by their names, by their labels, or both.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodes) || has(self.selector)",message="spec.nodeMaintenance must name nodes, by nodes or by selector"
type NodeMaintenance struct {
	// Nodes are names of nodes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// Selector selects nodes by their labels. A node whose Node object is gone has none.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="spec.nodeMaintenance.selector must not be empty: it would select every node"
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// DriftPolicy says what happens when somebody changes what the operator provides.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

const (
	// DriftPolicyRepair puts it back.
	DriftPolicyRepair DriftPolicy = "Repair"
	// DriftPolicyReport leaves it, and says in the object's status what was changed, since when
	// and by which field manager. What the object's own spec changes is still provided.
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
	// Generation of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How many objects it selects.
	// +optional
	Selected int32 `json:"selected"`

	// How many of them have a step that it holds.
	// +optional
	Held int32 `json:"held"`

	// When the next of its windows opens, or "open" with the time at which it closes.
	// +optional
	NextWindow string `json:"nextWindow,omitempty"`

	// Ready is true when the policy can be followed. SelectsNothing and Contradicts are
	// there when they are true.
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
