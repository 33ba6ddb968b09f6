// Package v1 is the API of etcd clusters, etcd.database.coreos.com/v1. It is the storage
// version; v1beta2 is the legacy API of the same kinds.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.database.coreos.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "etcd.database.coreos.com", Version: "v1"}

// AddToScheme registers the kinds of this API.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &EtcdCluster{}, &EtcdClusterList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
