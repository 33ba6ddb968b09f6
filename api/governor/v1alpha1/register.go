// Package v1alpha1 is the API with which people own what the operator may do and
// when, governor.dev/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=governor.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "governor.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this API.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &OperationPolicy{}, &OperationPolicyList{}, &Approval{}, &ApprovalList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
