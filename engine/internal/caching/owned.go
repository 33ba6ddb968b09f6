package caching

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxKept is how many bytes of data, and how many of annotations, the cache keeps of a ConfigMap or a Secret.
const maxKept = 64 << 10

// TrimLarge drops the data of large ConfigMaps and Secrets before they are cached: everyone who may write in a namespace can
// give them the application's label, and 250 of a megabyte would end the operator. Of the application's own objects hardly
// any is so large; such a one is applied again when its inputs change, which writes nothing. The number of objects has no
// bound here: a ResourceQuota gives it one.
func TrimLarge(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if length(o.Data)+length(o.BinaryData) > maxKept {
			o.Data, o.BinaryData = nil, nil
		}
		trimAnnotations(&o.ObjectMeta)
	case *corev1.Secret:
		if length(o.Data) > maxKept {
			o.Data = nil
		}
		trimAnnotations(&o.ObjectMeta)
	}
	return obj, nil
}

func trimAnnotations(o *metav1.ObjectMeta) {
	if length(o.Annotations) > maxKept {
		o.Annotations = nil
	}
}

func length[V string | []byte](all map[string]V) (n int) {
	for key, value := range all {
		n += len(key) + len(value)
	}
	return n
}
