package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the factory's API.
var GroupVersion = schema.GroupVersion{Group: "awesome.corp.com", Version: "v1"}

// AddToScheme registers the factory's kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Candy{}, &CandyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Candy is one bar of chocolate.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=candies,singular=candy,shortName=cn,categories=governor
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Flavor,type=string,JSONPath=`.spec.flavor`
// +kubebuilder:printcolumn:name=Machine,type=string,JSONPath=`.status.machine`
// +kubebuilder:printcolumn:name=Wanted,type=integer,JSONPath=`.status.wanted`,description="Sugar that the flavor stands for, in mg/g"
// +kubebuilder:printcolumn:name=Sweetness,type=integer,JSONPath=`.status.sweetness.value`,description="Sugar that was measured last, in mg/g"
// +kubebuilder:printcolumn:name=Made,type=integer,JSONPath=`.status.bars.made`
// +kubebuilder:printcolumn:name=Disposed,type=integer,JSONPath=`.status.bars.disposed`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type Candy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CandySpec   `json:"spec"`
	Status CandyStatus `json:"status,omitempty"`
}

// CandySpec is what is wanted.
type CandySpec struct {
	// Flavor is bitter, dark, milk, white, or sweet with as many e as it shall be sweet: from sweet to sweeeeeeeeeeeet.
	//
	// +kubebuilder:validation:Pattern=`^(bitter|dark|milk|white|swe{2,12}t)$`
	Flavor string `json:"flavor"`

	// Machine is the name of the Service, in the namespace of the candy, of the machine that makes it.
	//
	// +kubebuilder:default=chocolate-machine
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Machine string `json:"machine,omitempty"`

	// Attempts is how many bars are made at most until one is as sweet as it should be.
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Attempts int `json:"attempts,omitempty"`
}

// Sugar is what the flavor stands for, in milligrams of sugar in a gram of chocolate; 0 if it is not known.
func (s CandySpec) Sugar() int {
	known := map[string]int{"bitter": 100, "dark": 300, "milk": 500, "white": 580}
	if sugar, ok := known[s.Flavor]; ok {
		return sugar
	}
	if e := strings.Count(s.Flavor, "e"); s.Flavor == "sw"+strings.Repeat("e", e)+"t" && e >= 2 {
		return 500 + 20*e
	}
	return 0
}

// Tolerance is how far from the wanted sugar a bar may be, in mg/g.
const Tolerance = 20

// Unit is the unit of all sweetness.
const Unit = "mg/g"

// CandyStatus is what is.
type CandyStatus struct {
	// ObservedGeneration is the generation that the conditions speak of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled; MachineAnswers, which is Unknown while it does not; and
	// SensorTrusted.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Machine is the one that makes it.
	Machine string `json:"machine,omitempty"`
	// Wanted is the sugar that the flavor stands for, in mg/g.
	Wanted int `json:"wanted,omitempty"`
	// Sweetness is what was measured last.
	Sweetness *Sweetness `json:"sweetness,omitempty"`
	// Disposed says that the bar that was measured last was disposed of.
	Disposed bool `json:"disposed,omitempty"`
	// Bars counts those of the present order.
	Bars Bars `json:"bars,omitempty"`
	// Delivered is the bar that was as it should be.
	Delivered *Delivered `json:"delivered,omitempty"`
}

// Sweetness is a measurement of one bar.
type Sweetness struct {
	// Bar is the machine's number of the bar.
	Bar string `json:"bar"`
	// Value is the median of the samples.
	Value int `json:"value"`
	// Unit is mg/g: milligrams of sugar in a gram of chocolate.
	Unit string `json:"unit"`
	// Samples is how many were taken.
	Samples int `json:"samples"`
	// Time is when they were taken.
	Time metav1.Time `json:"time"`
}

// Bars counts bars of chocolate.
type Bars struct {
	Made     int `json:"made"`
	Disposed int `json:"disposed"`
}

// Delivered is a bar that was as it should be.
type Delivered struct {
	// Bar is the machine's number of the bar.
	Bar string `json:"bar"`
	// Flavor is the one that it was made for.
	Flavor string `json:"flavor"`
}

// CandyList is a list of candies.
//
// +kubebuilder:object:root=true
type CandyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Candy `json:"items"`
}

// StatusFields implements lifecycle.Resource.
func (c *Candy) StatusFields() (observedGeneration *int64, conditions *[]metav1.Condition) {
	return &c.Status.ObservedGeneration, &c.Status.Conditions
}
