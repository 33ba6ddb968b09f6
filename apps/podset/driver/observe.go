package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/kube/apply"
)

// Observe implements lifecycle.Driver.
func (d Driver) Observe(ctx context.Context, obj *appv1.PodSet) (podset.World, error) {
	owned, labelled := &corev1.PodList{}, &corev1.PodList{}
	near := client.InNamespace(obj.Namespace)
	err := d.client.List(ctx, owned, near, client.UnsafeDisableDeepCopy,
		client.MatchingFields{apply.OwnerIndex: owner(obj)})
	if err == nil {
		err = d.client.List(ctx, labelled, near, client.UnsafeDisableDeepCopy, client.MatchingLabels(podset.Selector(obj.Name)))
	}
	if err != nil {
		return podset.World{}, fmt.Errorf("cannot list the pods: %w", err)
	}
	seen := podset.World{Pods: make([]podset.Pod, 0, len(owned.Items))}
	shown := make(map[string]bool, len(owned.Items))
	for i := range owned.Items {
		shown[owned.Items[i].Name] = true
		seen.Pods = append(seen.Pods, read(obj, &owned.Items[i]))
	}
	for i := range labelled.Items {
		if p := &labelled.Items[i]; metav1.GetControllerOfNoCopy(p) == nil {
			shown[p.Name] = true
			seen.Pods = append(seen.Pods, read(obj, p))
		}
	}
	hidden, err := d.unwatched(ctx, obj, shown)
	seen.Pods = append(seen.Pods, hidden...)
	if err != nil {
		return seen, err
	}
	slices.SortFunc(seen.Pods, func(a, b podset.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return d.tryTemplate(ctx, obj, seen)
}

// owner returns the set's key in the owner index. A set without a UID, as in a preview,
// owns nothing.
func owner(obj *appv1.PodSet) string { return cmp.Or(string(obj.UID), "none") }

// unwatched returns adopted pods that the set controls and the cache does not show: they lost
// the label by which pods are watched. A pod that the set named itself shows up when its
// number is used again. So a settled or scaling set sends no request.
func (d Driver) unwatched(ctx context.Context, obj *appv1.PodSet, shown map[string]bool) ([]podset.Pod, error) {
	var pods []podset.Pod
	for _, name := range obj.Status.PodNames {
		if shown[name] || podset.Numbered(obj.Name, name) {
			continue
		}
		p := &corev1.Pod{}
		err := d.live.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: name}, p)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read pod %q: %w", name, err)
		}
		if err == nil && metav1.IsControlledBy(p, obj) {
			pods = append(pods, read(obj, p))
		}
	}
	return pods, nil
}
