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

// same fails if the set is not the one that was decided about any more. It asks the API
// server itself: a set that is being deleted must not adopt what is to outlive it.
func (d Driver) same(ctx context.Context, obj *appv1.PodSet) error {
	now := &appv1.PodSet{}
	err := d.live.Get(ctx, client.ObjectKeyFromObject(obj), now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot see whether the set has changed: %w", err)
	case err != nil, now.UID != obj.UID, now.DeletionTimestamp != nil:
		return &lifecycle.Deferred{Reason: "the set is being deleted"}
	case now.Generation != obj.Generation:
		return &lifecycle.Deferred{Reason: "the set has been changed meanwhile"}
	}
	return nil
}

// unmoved fails if the set, or the pods that count, are not as they were seen. The cache
// of an operator that has just started may be older than what its predecessor did; two
// requests before each step, however many pods it is about, keep it from doing that
// again under other names.
func (d Driver) unmoved(ctx context.Context, obj *appv1.PodSet, seen podset.World) error {
	if err := d.same(ctx, obj); err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := d.live.List(ctx, list, client.InNamespace(obj.Namespace), client.MatchingLabels(podset.Selector(obj.Name)))
	if err != nil {
		return fmt.Errorf("cannot see whether the pods have changed: %w", err)
	}
	return agree(obj, seen, list.Items)
}

// agree compares what was seen with what there is.
func agree(obj *appv1.PodSet, seen podset.World, pods []metav1.PartialObjectMetadata) error {
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
			return &lifecycle.Deferred{Reason: fmt.Sprintf("pod %q was not seen yet", p.Name)}
		}
	}
	for _, p := range seen.Actives() {
		if !stays[p.UID] {
			return &lifecycle.Deferred{Reason: fmt.Sprintf("pod %q has gone meanwhile", p.Name)}
		}
	}
	return nil
}
