package driver

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/dryrun"
	"github.com/governor-dev/governor/lifecycle"
)

// tryTemplate adds the API server's answer to a dry run of the next pod, while a member needs
// another one. At rest it sends no request.
func (d *Driver) tryTemplate(ctx context.Context, want *etcdv1.EtcdCluster, seen etcd.World) lifecycle.TemplateVerdict {
	template, pod := nextPod(want, seen)
	if pod == nil {
		return lifecycle.TemplateVerdict{}
	}
	return d.templates.Try(ctx, d.client, want.UID, template, pod)
}

// TryTemplate returns the world with the API server's answer to a dry run of the next pod of want,
// for a preview.
func TryTemplate(ctx context.Context, c client.Client, want *etcdv1.EtcdCluster, seen etcd.World) etcd.World {
	seen.Template = lifecycle.TemplateVerdict{}
	if template, pod := nextPod(want, seen); pod != nil {
		seen.Template = dryrun.Try(ctx, c, template, pod)
	}
	return seen
}

// nextPod returns the pod that a member gets next, and its template; nil if no member needs
// another one.
func nextPod(want *etcdv1.EtcdCluster, seen etcd.World) (template string, pod *corev1.Pod) {
	s, ok := etcd.NextTemplate(want, seen)
	if !ok {
		return "", nil
	}
	set, err := etcd.StatefulSet(want, seen, s)
	if err != nil {
		return "", nil // the rules report it
	}
	return etcd.TemplateOf(s), podOfSet(want, set)
}

// podOfSet returns the pod that the StatefulSet controller would create
// (pkg/controller/statefulset, newStatefulSetPod). Admission policies may demand an owner. A dry
// run never reaches the garbage collector, so the owner's UID is not that of the StatefulSet.
func podOfSet(want *etcdv1.EtcdCluster, set *appsv1.StatefulSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = want.Namespace, podName(set.Name)
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	maps.Copy(pod.Labels, map[string]string{appsv1.StatefulSetPodNameLabel: pod.Name, appsv1.PodIndexLabel: "0"})
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: set.Name, UID: want.UID, Controller: new(true),
	}}
	return pod
}
