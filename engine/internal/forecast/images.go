package forecast

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// untriedImages says of each image that the plan runs and that no pod of the application has run whether it exists is not known:
// only a node that pulls it finds out.
func (v *View[T, W]) untriedImages(ctx context.Context, next future[T, W], r preview.Report) []string {
	images := v.Judge.Abilities.Images
	if images == nil || !r.Changes() || deleting(next.want) || !v.WatchesPods {
		return nil
	}
	var steps []lifecycle.Step
	for _, s := range r.Actions() {
		steps = append(steps, s.Step)
	}
	var pods corev1.PodList
	if err := v.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return []string{"Which images are known: " + err.Error()}
	}
	var said []string
	for _, image := range images(next.want, steps) {
		if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return hasRun(&p, image) }) {
			said = append(said, fmt.Sprintf("Whether the image %s exists and can be pulled: no pod that Governor watches has run it.", image))
		}
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// hasRun reports whether a node has the image: only then does the status of its container have an ID.
func hasRun(p *corev1.Pod, image string) bool {
	specs := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	states := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	return slices.ContainsFunc(specs, func(c corev1.Container) bool {
		return c.Image == image && slices.ContainsFunc(states, func(s corev1.ContainerStatus) bool { return s.Name == c.Name && s.ImageID != "" })
	})
}
