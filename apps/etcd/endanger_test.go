package etcd_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/apps/etcd"
)

// What others add to a member's pod stays, unless it decides which data etcd uses, or as which member it starts.
func TestEndangersData(t *testing.T) {
	want := wanted(3)
	want.Spec.Pod.Env = []corev1.EnvVar{{Name: "ETCD_HEARTBEAT_INTERVAL", Value: "200"}}
	etcdWith := func(edit func(*corev1.Container)) corev1.PodSpec {
		c := corev1.Container{Name: etcd.Name, VolumeMounts: []corev1.VolumeMount{{Name: etcd.DataVolume, MountPath: "/var/lib/etcd"}}}
		edit(&c)
		return corev1.PodSpec{Containers: []corev1.Container{c}}
	}
	env := func(name string) corev1.PodSpec {
		return etcdWith(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: name, Value: "true"}} })
	}
	mount := func(name, at string) corev1.PodSpec {
		return etcdWith(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at})
		})
	}
	beside := func(m ...corev1.VolumeMount) corev1.PodSpec {
		pod := etcdWith(func(*corev1.Container) {})
		pod.InitContainers = []corev1.Container{{Name: "init", VolumeMounts: m}}
		return pod
	}
	cases := map[string]struct {
		pod    corev1.PodSpec
		danger bool
		hidden bool
	}{
		"Own":           {etcdWith(func(*corev1.Container) {}), false, false},
		"Declared":      {env("ETCD_HEARTBEAT_INTERVAL"), false, false},
		"Bootstrap":     {env("ETCD_INITIAL_CLUSTER"), false, false},
		"OtherVariable": {env("HTTP_PROXY"), false, false},
		"ForceNew":      {env("ETCD_FORCE_NEW_CLUSTER"), true, false},
		"From":          {etcdWith(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{Prefix: "ETCD_"}} }), true, false},
		"Certificates":  {mount("ca", "/etc/ssl/certs"), false, false},
		"Over":          {mount("cache", "/var/lib/etcd/"), true, true},
		"Below":         {mount("cache", "/var/lib/etcd/data/member"), true, true},
		"Beside":        {mount("cache", "/var/lib/etcd-cache"), false, false},
		"Mesh":          {beside(corev1.VolumeMount{Name: "mesh", MountPath: "/mesh"}), false, false},
		"Reader":        {beside(corev1.VolumeMount{Name: etcd.DataVolume, MountPath: "/data", ReadOnly: true}), false, false},
		"Writer":        {beside(corev1.VolumeMount{Name: etcd.DataVolume, MountPath: "/data"}), true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := etcd.EndangersData(want, c.pod); got != c.danger {
				t.Errorf("it endangers the data: %t", got)
			}
			if got := etcd.HidesData(c.pod); got != c.hidden {
				t.Errorf("it hides the data: %t", got)
			}
		})
	}
}
