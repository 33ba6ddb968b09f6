package caching

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Trim drops from what is only watched, before it is cached, what no decision is
// made from. Of a pod that is most: its probes, environment and most volumes are in the
// template that it was made from, and they are most of an object's memory. The claims that
// it mounts stay: they prove whose data the pod has.
func Trim(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	if p, ok := obj.(*corev1.Pod); ok {
		p.Spec = corev1.PodSpec{
			NodeName:       p.Spec.NodeName,
			InitContainers: outlines(p.Spec.InitContainers),
			Containers:     outlines(p.Spec.Containers),
			Volumes:        claims(p.Spec.Volumes),
		}
	}
	return obj, nil
}

// outlines are the containers by name and image.
func outlines(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, 0, len(containers))
	for _, c := range containers {
		kept = append(kept, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return kept
}

// claims are the volumes that outlive the pod.
func claims(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range volumes {
		if v.PersistentVolumeClaim != nil {
			kept = append(kept, v)
		}
	}
	return kept
}
