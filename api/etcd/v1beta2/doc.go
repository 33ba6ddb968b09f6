// Package v1beta2 is the legacy API of etcd clusters, etcd.database.coreos.com/v1beta2:
// every field that objects of that time can have, under the names they had. It is
// served for those objects and stored as v1.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.database.coreos.com
package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "etcd.database.coreos.com", Version: "v1beta2"}

// AddToScheme registers the kinds of this API.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &EtcdCluster{}, &EtcdClusterList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
