package driver

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/apps/memcached"
)

// templateOf identifies the pod's template; it is empty for a pod of no Deployment.
func templateOf(p *corev1.Pod) string { return p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] }

// noTemplate matches no pod.
const noTemplate = "none"

// newTemplate returns the Deployment's present template if pods of several templates
// exist, else noTemplate. It takes the newest pod among those with the Deployment's image,
// or among all if no pod has that image.
func newTemplate(dep *appsv1.Deployment, pods []corev1.Pod) string {
	var youngest *corev1.Pod
	several := false
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil || templateOf(p) == "" {
			continue
		}
		several = several || youngest != nil && templateOf(p) != templateOf(youngest)
		if youngest == nil || prefers(imageOf(dep.Spec.Template.Spec.Containers), p, youngest) {
			youngest = p
		}
	}
	if !several {
		return noTemplate
	}
	return templateOf(youngest)
}

// prefers reports whether a is more likely than b to have the present template.
func prefers(image string, a, b *corev1.Pod) bool {
	isA, isB := imageOf(a.Spec.Containers) == image, imageOf(b.Spec.Containers) == image
	if isA != isB {
		return isA
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

func imageOf(containers []corev1.Container) string {
	for _, c := range containers {
		if c.Name == memcached.Name {
			return c.Image
		}
	}
	return ""
}
