package main

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// volumeSize is the size of every volume. An etcd with little data needs no more.
const volumeSize = "1Gi"

// labelPlain marks the objects of a plain StatefulSet. The operator does not use it.
const labelPlain = "bench.governor.dev/plain"

// governed returns an EtcdCluster.
func governed(name string, size int, mode etcdv1.TLSMode) *subject {
	return &subject{
		name: name, size: size, governed: true, encrypted: mode != etcdv1.TLSModeDisabled,
		objects: []client.Object{object(name, size, mode)},
		labels:  client.MatchingLabels{lifecycle.LabelApp: etcd.Name, lifecycle.LabelInstance: name},
		service: types.NamespacedName{Namespace: namespace, Name: name + "-client"},
	}
}

func object(name string, size int, mode etcdv1.TLSMode) *etcdv1.EtcdCluster {
	room := resource.MustParse(volumeSize)
	return &etcdv1.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: etcdv1.EtcdClusterSpec{
			Size: int32(size), TLS: etcdv1.TLSSpec{Mode: mode}, Storage: etcdv1.StorageSpec{Size: &room, Retention: etcdv1.RetentionDelete},
		},
	}
}

// plain returns what a user would write without an operator: a StatefulSet whose pods know
// each other's names from the start. It uses the operator's pod template, so that startup
// costs the same.
func plain(name string, size int) (*subject, error) {
	labels := map[string]string{labelPlain: name}
	set, err := statefulSet(name, size, labels)
	if err != nil {
		return nil, err
	}
	return &subject{
		name: name, size: size, labels: labels,
		objects: []client.Object{headless(name, labels), service(name+"-client", labels), set},
		service: types.NamespacedName{Namespace: namespace, Name: name + "-client"},
	}, nil
}

func statefulSet(name string, size int, labels map[string]string) (*appsv1.StatefulSet, error) {
	want := object(name, size, etcdv1.TLSModeDisabled)
	set, err := etcd.StatefulSet(want, etcd.World{}, lifecycle.Step{Target: name, Args: map[string]string{etcd.ArgVersion: etcd.Newest}})
	if err != nil {
		return nil, err
	}
	set.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	set.Spec.Replicas = new(int32(size))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
	set.Spec.Template.ObjectMeta = metav1.ObjectMeta{Labels: labels}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim(want, labels)}
	bootstrap(name, size, labels, &set.Spec.Template.Spec)
	return set, nil
}

// claim returns the operator's volume claim as a template.
func claim(want *etcdv1.EtcdCluster, labels map[string]string) corev1.PersistentVolumeClaim {
	c := etcd.Claim(want, lifecycle.Step{Target: want.Name})
	c.ObjectMeta = metav1.ObjectMeta{Name: "data", Labels: labels}
	return *c
}

// bootstrap changes the pod of one member into a template for all members.
func bootstrap(name string, size int, labels map[string]string, pod *corev1.PodSpec) {
	pod.Volumes, pod.HostAliases = nil, nil // they belong to a single member
	selector := &metav1.LabelSelector{MatchLabels: labels}
	for i := range pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm.LabelSelector = selector
	}
	for i := range pod.TopologySpreadConstraints {
		pod.TopologySpreadConstraints[i].LabelSelector = selector
	}
	c := &pod.Containers[0]
	c.Env = []corev1.EnvVar{{
		Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}}
	// etcd uses the last value of a repeated flag.
	c.Args = append(c.Args, "--name=$(POD)",
		"--initial-advertise-peer-urls="+address("$(POD)", name, 2380), "--advertise-client-urls="+address("$(POD)", name, 2379),
		"--initial-cluster="+initialCluster(name, size), "--initial-cluster-token="+name)
}

func initialCluster(name string, size int) string {
	var all []string
	for i := range size {
		pod := fmt.Sprintf("%s-%d", name, i)
		all = append(all, pod+"="+address(pod, name, 2380))
	}
	return strings.Join(all, ",")
}

func address(pod, service string, port int) string {
	return fmt.Sprintf("http://%s.%s.%s.svc:%d", pod, service, namespace, port)
}

// headless lets the members resolve each other before they are ready.
func headless(name string, labels map[string]string) *corev1.Service {
	s := service(name, labels)
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "peer", Port: 2380})
	s.Spec.ClusterIP, s.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, true
	return s
}

func service(name string, labels map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "client", Port: 2379}}},
	}
}
