package driver

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// findLostNodes adds the nodes that no longer exist, and that the volumes of unschedulable members are
// bound to: such a member finds no node again. What cannot be read counts as unknown.
func (d *Driver) findLostNodes(ctx context.Context, p parts, members []etcd.Member) {
	for i := range members {
		m, claim := &members[i], p.claims[members[i].Name]
		if claim == nil || claim.Spec.VolumeName == "" || m.Pod.Trouble != lifecycle.PodProblemUnschedulable {
			continue
		}
		var volume corev1.PersistentVolume
		if err := d.live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &volume); err != nil {
			continue
		}
		labels := nodeLabelsOf(&volume, claim.Annotations[selectedNode])
		if len(labels) > 0 && !slices.ContainsFunc(labels, func(l nodeLabel) bool { return d.mayExist(ctx, l) }) {
			m.Volume.NodeLost = labels[0].value
		}
	}
}

// nodeLabel identifies one node, unlike the label of a zone.
type nodeLabel struct{ key, value string }

// nodeLabelsOf are the labels of the nodes that can use the volume; none if it is not bound to single
// nodes. A storage driver may have a label of its own with the node's name.
func nodeLabelsOf(volume *corev1.PersistentVolume, node string) []nodeLabel {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var all []nodeLabel
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			one := r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1
			return one && (r.Key == corev1.LabelHostname || node != "" && r.Values[0] == node)
		})
		if i < 0 {
			return nil
		}
		all = append(all, nodeLabel{term.MatchExpressions[i].Key, term.MatchExpressions[i].Values[0]})
	}
	return all
}

// mayExist reports whether a node with the label exists, or may exist.
func (d *Driver) mayExist(ctx context.Context, l nodeLabel) bool {
	var found corev1.NodeList
	err := d.live.List(ctx, &found, client.MatchingLabels{l.key: l.value}, client.Limit(1))
	return err != nil || len(found.Items) > 0
}
