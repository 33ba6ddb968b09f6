// Package driver observes memcached through Kubernetes.
package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/kube/pod"
	"github.com/governor-dev/governor/lifecycle"
)

// Driver implements lifecycle.Driver for memcached.
type Driver struct{ client client.Client }

// New returns a driver that reads through the client. It reads only kinds that are in the
// cache.
func New(a kube.Access) lifecycle.Driver[*cachev1.Memcached, memcached.World] {
	return Driver{client: a.Client}
}

// Observe implements lifecycle.Driver. A server's health is its readiness probe, which the
// cache watches: the driver polls nothing.
func (d Driver) Observe(ctx context.Context, obj *cachev1.Memcached) (memcached.World, error) {
	var seen memcached.World
	dep := &appsv1.Deployment{}
	err := d.client.Get(ctx, client.ObjectKeyFromObject(obj), dep)
	if client.IgnoreNotFound(err) != nil {
		return seen, fmt.Errorf("cannot read the deployment: %w", err)
	}
	if err == nil && metav1.IsControlledBy(dep, obj) {
		seen.Rollout = rollout(dep)
	}
	pods := &corev1.PodList{}
	err = d.client.List(ctx, pods, client.InNamespace(obj.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{lifecycle.LabelApp: memcached.Name, lifecycle.LabelInstance: obj.Name})
	if err != nil {
		return seen, fmt.Errorf("cannot list the pods: %w", err)
	}
	present := newTemplate(dep, pods.Items)
	for i := range pods.Items {
		// A finished pod (evicted, failed) is no server. The Deployment replaces it.
		if p := pod.Of(&pods.Items[i], memcached.Name); !p.Finished {
			seen.Pods = append(seen.Pods, memcached.Pod{
				Name: pods.Items[i].Name, Ready: p.Ready, Terminating: p.Terminating, Updated: templateOf(&pods.Items[i]) == present,
				Problem: p.Problem, Detail: p.Detail, Since: p.Since,
			})
		}
	}
	slices.SortFunc(seen.Pods, func(a, b memcached.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return seen, nil
}

// Act implements lifecycle.Driver. Memcached has no steps.
func (Driver) Act(_ context.Context, _ *cachev1.Memcached, _ memcached.World, step lifecycle.Step) error {
	return fmt.Errorf("memcached has no step %s", step)
}

func rollout(dep *appsv1.Deployment) memcached.Rollout {
	r := memcached.Rollout{
		Current:  dep.Status.ObservedGeneration >= dep.Generation,
		Template: dep.Annotations[memcached.AnnotationTemplate],
		Updated:  dep.Status.UpdatedReplicas,
		Total:    dep.Status.Replicas,
	}
	for _, c := range dep.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			r.Refused = refusal(c.Message)
		case c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded":
			r.Stuck = r.Current
		}
	}
	return r
}

// refusal returns the API server's reason without the pod's name, which differs at each
// attempt.
func refusal(message string) string {
	if _, reason, ok := strings.Cut(message, "is forbidden: "); ok {
		return reason
	}
	return message
}
