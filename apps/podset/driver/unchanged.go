package driver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// checkSetUnchanged returns an error if the set changed since it was observed. It reads
// from the API server: a set that is being deleted must not adopt pods that are to outlive
// it.
func (d Driver) checkSetUnchanged(ctx context.Context, obj *appv1.PodSet) error {
	now := &appv1.PodSet{}
	err := d.live.Get(ctx, client.ObjectKeyFromObject(obj), now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot read the set: %w", err)
	case err != nil, now.UID != obj.UID, now.DeletionTimestamp != nil:
		return &lifecycle.Deferred{Reason: "the set is being deleted"}
	case now.Generation != obj.Generation:
		return &lifecycle.Deferred{Reason: "the set has changed"}
	}
	return nil
}

// checkUnchanged returns an error if the set or its active pods changed since they were
// observed. The cache of a new leader may be older than its predecessor's last step.
// Without this check it would repeat the step with other pods. The check takes two
// requests, regardless of the number of pods.
func (d Driver) checkUnchanged(ctx context.Context, obj *appv1.PodSet, seen podset.World) error {
	if err := d.checkSetUnchanged(ctx, obj); err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := d.live.List(ctx, list, client.InNamespace(obj.Namespace), client.MatchingLabels(podset.Selector(obj.Name)))
	if err != nil {
		return fmt.Errorf("cannot list the pods: %w", err)
	}
	return checkPodsUnchanged(obj, seen, list.Items)
}

// checkPodsUnchanged compares the observed pods with the live ones.
func checkPodsUnchanged(obj *appv1.PodSet, seen podset.World, pods []metav1.PartialObjectMetadata) error {
	known := make(map[types.UID]bool, len(seen.Pods))
	for _, p := range seen.Pods {
		known[p.UID] = true
	}
	stays := make(map[types.UID]bool, len(pods))
	for i := range pods {
		p := &pods[i]
		other := metav1.GetControllerOfNoCopy(p) != nil && !metav1.IsControlledBy(p, obj)
		if other || p.DeletionTimestamp != nil {
			continue
		}
		if stays[p.UID] = true; !known[p.UID] {
			return &lifecycle.Deferred{Reason: fmt.Sprintf("pod %q is not in the cache yet", p.Name)}
		}
	}
	for _, p := range seen.Actives() {
		if !stays[p.UID] {
			return &lifecycle.Deferred{Reason: fmt.Sprintf("pod %q is gone", p.Name)}
		}
	}
	return nil
}
