package etcd

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// EndangersData reports whether others added something to a member's pod that decides which data etcd
// uses, or as which member it starts: a variable of etcd such as ETCD_FORCE_NEW_CLUSTER, a mount
// that hides the data directory, or a container that can write to the volume.
func EndangersData(want *etcdv1.EtcdCluster, pod corev1.PodSpec) bool {
	return setsVariables(want, pod) || HidesData(pod) || slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), sharesData)
}

// setsVariables reports whether etcd reads variables that neither Governor nor the spec declares.
func setsVariables(want *etcdv1.EtcdCluster, pod corev1.PodSpec) bool {
	declared := environment(want, "")
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		undeclared := func(e corev1.EnvVar) bool {
			return strings.HasPrefix(e.Name, "ETCD_") && !slices.ContainsFunc(declared, func(d corev1.EnvVar) bool { return d.Name == e.Name })
		}
		return c.Name == Name && (len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, undeclared))
	})
}

// HidesData reports whether another volume is mounted over etcd's data. The data directory then seems
// to be empty, and the member's own data is intact.
func HidesData(pod corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return c.Name == Name && slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			at := path.Clean(m.MountPath)
			return m.Name != DataVolume && (at == dataDir || strings.HasPrefix(at, dataDir+"/"))
		})
	})
}

// sharesData reports whether a container other than etcd mounts the volume of the data.
func sharesData(c corev1.Container) bool {
	return c.Name != Name && slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == DataVolume && !m.ReadOnly })
}
