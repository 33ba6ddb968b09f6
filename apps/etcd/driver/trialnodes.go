package driver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/apps/etcd"
)

// placeTrial chooses the node of a trial pod. The member's own node takes the pod beside the member, where the scheduler
// might find no room. If the member could not return to that node, the pod is restricted to the nodes that can use the
// member's volume. A PersistentVolume that cannot be read restricts nothing.
func (d *Driver) placeTrial(ctx context.Context, trial, member *corev1.Pod, claim *corev1.PersistentVolumeClaim) error {
	if member != nil {
		is, err := d.takes(ctx, member.Spec.NodeName, trial)
		if err != nil {
			return err
		}
		if is {
			trial.Spec.NodeName = member.Spec.NodeName
			return nil
		}
	}
	if claim != nil && claim.Spec.VolumeName != "" {
		d.bindToVolume(ctx, trial, claim.Spec.VolumeName)
	}
	return nil
}

// takes reports that the scheduler could choose the node for the pod, by the node's labels and taints. Without the right
// to read nodes it is not known, and assumed.
func (d *Driver) takes(ctx context.Context, name string, of *corev1.Pod) (bool, error) {
	node := &corev1.Node{}
	if name == "" {
		return false, nil
	}
	switch err := d.live.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot read the node of the trial: %w", err)
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(of).Match(node)
	_, repels := corev1helpers.FindMatchingUntoleratedTaint(klog.FromContext(ctx), taintsOf(node), of.Spec.Tolerations, keepsAway, false)
	return matches && err == nil && !repels, nil
}

// taintsOf includes that of a cordoned node, which a controller adds a moment later.
func taintsOf(node *corev1.Node) []corev1.Taint {
	if !node.Spec.Unschedulable {
		return node.Spec.Taints
	}
	return append(slices.Clone(node.Spec.Taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

func keepsAway(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }

// findMovable adds that a trial pod without a node could run on its member's now, because that was changed. The cache
// has no selectors of pods.
func (d *Driver) findMovable(ctx context.Context, p parts, t etcd.Trial) etcd.Trial {
	if t.Unscheduled == "" {
		return t
	}
	trial, member := &corev1.Pod{}, p.pods[p.trial.Annotations[etcd.AnnotationTried]]
	if member == nil || d.live.Get(ctx, client.ObjectKeyFromObject(p.trial), trial) != nil {
		return t
	}
	is, err := d.takes(ctx, member.Spec.NodeName, trial)
	t.Movable = is && err == nil
	return t
}

func (d *Driver) bindToVolume(ctx context.Context, trial *corev1.Pod, name string) {
	var volume corev1.PersistentVolume
	err := d.live.Get(ctx, client.ObjectKey{Name: name}, &volume)
	if err != nil || volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return
	}
	affinity := &corev1.NodeAffinity{}
	if a := trial.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		affinity = a.NodeAffinity.DeepCopy()
	}
	affinity.RequiredDuringSchedulingIgnoredDuringExecution = both(affinity.RequiredDuringSchedulingIgnoredDuringExecution, volume.Spec.NodeAffinity.Required)
	trial.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
}

// both selects the nodes that both select. A selector selects what any of its terms does, so that each term of one is
// joined with each of the other. An empty term selects nothing.
func both(one, other *corev1.NodeSelector) *corev1.NodeSelector {
	if one == nil {
		return other
	}
	joined := &corev1.NodeSelector{}
	for _, a := range one.NodeSelectorTerms {
		if len(a.MatchExpressions) == 0 && len(a.MatchFields) == 0 {
			continue
		}
		for _, b := range other.NodeSelectorTerms {
			joined.NodeSelectorTerms = append(joined.NodeSelectorTerms, corev1.NodeSelectorTerm{
				MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions),
				MatchFields:      slices.Concat(a.MatchFields, b.MatchFields),
			})
		}
	}
	if len(joined.NodeSelectorTerms) == 0 {
		return one
	}
	return joined
}
