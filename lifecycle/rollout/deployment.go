package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/governor-dev/governor/lifecycle"
)

// Deployment returns one of so many pods for the instance of the application. Its selector is made of both names, so
// that two instances never share pods.
func Deployment(app, instance string, size int32, pod corev1.PodSpec) *appsv1.Deployment {
	labels := map[string]string{lifecycle.LabelApp: app, lifecycle.LabelInstance: instance}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: instance, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &size, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// Restricted returns the pod with the settings of the Pod Security Standard "restricted": it runs as the user, not as
// root, without privileges and on the runtime's system calls. It gets no token for the API server, and its root file
// systems are read-only. What the pod or a container says itself stays.
func Restricted(user int64, pod corev1.PodSpec) corev1.PodSpec {
	pod = *pod.DeepCopy()
	if pod.SecurityContext == nil {
		pod.SecurityContext = lifecycle.RestrictedPod(user)
		pod.SecurityContext.FSGroup = &user
	}
	if pod.AutomountServiceAccountToken == nil {
		pod.AutomountServiceAccountToken = new(false)
	}
	for _, all := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range all {
			if all[i].SecurityContext == nil {
				all[i].SecurityContext = lifecycle.RestrictedContainer()
			}
		}
	}
	return pod
}

// Listens returns a probe that connects to the port every five seconds.
func Listens(port int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}},
		PeriodSeconds: 5,
	}
}
