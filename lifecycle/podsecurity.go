package lifecycle

import corev1 "k8s.io/api/core/v1"

// RestrictedPod returns a security context that satisfies the restricted Pod Security Standard
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/): processes run as that user and group.
func RestrictedPod(user int64) *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: &user, RunAsGroup: &user,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// RestrictedContainer is RestrictedPod for a container, which can also write to its volumes only.
func RestrictedContainer() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
