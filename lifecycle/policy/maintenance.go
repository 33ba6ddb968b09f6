package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/governor-dev/governor/lifecycle"
)

// Maintenance returns the nodes that the policies of one object name.
func (s Set) Maintenance() []lifecycle.NodeMaintenance {
	var all []lifecycle.NodeMaintenance
	for _, p := range s {
		if p.spec.NodeMaintenance != nil {
			all = append(all, lifecycle.NodeMaintenance{By: Said([]string{p.Name}), Covers: p.maintains})
		}
	}
	return all
}

// maintains reports whether the policy names the node. If the node's labels are unknown,
// only its name counts.
func (p *Policy) maintains(node string, its map[string]string) bool {
	m := p.spec.NodeMaintenance
	return slices.Contains(m.Nodes, node) || m.Selector != nil && its != nil && p.nodes.Matches(labels.Set(its))
}
