package memcached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	mebibyte = 1 << 20
	// defaultMemory is the memory limit if none is declared, as in the schema.
	defaultMemory = 128 * mebibyte
	// minHeadroom is the minimum memory for connections, the hash table and threads.
	minHeadroom = 32 * mebibyte
	// firstUnprivilegedPort is the first port that any user may listen on.
	firstUnprivilegedPort = 1024
	// user is the UID of memcached in the official images.
	user = 11211
)

func memoryLimit(want *cachev1.Memcached) resource.Quantity {
	if want.Spec.Memory != nil {
		return want.Spec.Memory.DeepCopy()
	}
	return *resource.NewQuantity(defaultMemory, resource.BinarySI)
}

// itemMegabytes returns the memory for items: the limit without a quarter of it, or
// without minHeadroom if that is more.
func itemMegabytes(limit resource.Quantity) int64 {
	headroom := max(limit.Value()/4, minHeadroom)
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
		// The startup probe runs every second, so that a server counts as soon as it is
		// ready. The later probes run less often.
		StartupProbe:    probe(1, 60),
		ReadinessProbe:  probe(5, 2),
		LivenessProbe:   probe(10, 3),
		SecurityContext: lifecycle.RestrictedContainer(),
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

// probe connects to the port every given seconds and fails after the given failures in a
// row.
func probe(seconds, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(Name)},
		},
		PeriodSeconds: seconds, FailureThreshold: failures, TimeoutSeconds: 2,
	}
}

// podSecurity satisfies the restricted Pod Security Standard, also for a privileged port:
// the standard lists the sysctl as safe.
func podSecurity(port int32) *corev1.PodSecurityContext {
	s := lifecycle.RestrictedPod(user)
	if port < firstUnprivilegedPort {
		s.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	return s
}
