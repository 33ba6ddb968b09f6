// Package v1 has the kinds of the chocolate factory.
//
// +kubebuilder:object:generate=true
// +groupName=awesome.corp.com
package v1
