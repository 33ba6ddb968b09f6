package podset

import (
	"cmp"
	"slices"
	"time"
)

// PodsToDelete are the n pods that are missed least, in the order in which a ReplicaSet
// chooses: one without a node before one with; pending before unknown before running;
// not ready before ready; of lower deletion cost; on a node that has more of them;
// ready for a shorter time; restarted more often; younger. The name decides the rest,
// so that the same world always gives the same pods.
func PodsToDelete(pods []Pod, n int) []Pod {
	crowd := map[string]int{}
	for _, p := range pods {
		crowd[p.Node]++
	}
	order := slices.Clone(pods)
	slices.SortFunc(order, func(a, b Pod) int {
		return cmp.Or(
			first(a.Node == "", b.Node == ""),
			cmp.Compare(a.Phase, b.Phase),
			first(!a.Ready, !b.Ready),
			cmp.Compare(a.Cost, b.Cost),
			cmp.Compare(crowd[b.Node], crowd[a.Node]),
			younger(a.ReadySince, b.ReadySince),
			cmp.Compare(b.Restarts, a.Restarts),
			younger(a.Created, b.Created),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return order[:min(max(0, n), len(order))]
}

// first orders what is so before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// younger orders the later time first; a time that is not known counts as now.
func younger(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return first(a.IsZero(), b.IsZero())
	}
	return b.Compare(a)
}
