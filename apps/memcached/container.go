package memcached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
)

const (
	mebibyte = 1 << 20
	// defaultMemory is the limit where none is given, as in the schema.
	defaultMemory = 128 * mebibyte
	// leastHeadroom is what memcached needs beside its items: connections, hash
	// table, threads.
	leastHeadroom = 32 * mebibyte
	// privileged is the first port that any user may listen on.
	privileged = 1024
	// user is the memcached user of the official images.
	user = 11211
)

func memoryLimit(want *cachev1.Memcached) resource.Quantity {
	if want.Spec.Memory != nil {
		return want.Spec.Memory.DeepCopy()
	}
	return *resource.NewQuantity(defaultMemory, resource.BinarySI)
}

// itemMegabytes is what memcached may fill with items: the limit less a quarter,
// and less the least headroom.
func itemMegabytes(limit resource.Quantity) int64 {
	headroom := max(limit.Value()/4, leastHeadroom)
	return max(1, (limit.Value()-headroom)/mebibyte)
}

func container(want *cachev1.Memcached) corev1.Container {
	limit := memoryLimit(want)
	return corev1.Container{
		Name:    Name,
		Image:   image(want),
		Command: []string{"memcached"},
		Args: []string{
			fmt.Sprintf("--port=%d", want.Spec.ContainerPort),
			fmt.Sprintf("--memory-limit=%d", itemMegabytes(limit)),
		},
		Ports: []corev1.ContainerPort{{
			Name: Name, ContainerPort: want.Spec.ContainerPort, Protocol: corev1.ProtocolTCP,
		}},
		Resources: requirements(want, limit),
		// The startup probe asks each second, so that a server counts as soon as it
		// answers; afterwards asking less often is enough.
		StartupProbe:    probe(1, 60),
		ReadinessProbe:  probe(5, 2),
		LivenessProbe:   probe(10, 3),
		SecurityContext: containerSecurity(),
	}
}

func requirements(want *cachev1.Memcached, limit resource.Quantity) corev1.ResourceRequirements {
	r := *want.Spec.Resources.DeepCopy()
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Limits[corev1.ResourceMemory] = limit
	if _, ok := r.Requests[corev1.ResourceMemory]; !ok {
		r.Requests[corev1.ResourceMemory] = limit
	}
	return r
}

// probe connects every so many seconds; so many failures in a row count.
func probe(seconds, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(Name)},
		},
		PeriodSeconds: seconds, FailureThreshold: failures, TimeoutSeconds: 2,
	}
}

// podSecurity satisfies the restricted Pod Security Standard. A low port needs no
// privilege either: the sysctl is one of those that the standard calls safe.
func podSecurity(port int32) *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(user)),
		RunAsGroup:     new(int64(user)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if port < privileged {
		s.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	return s
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
