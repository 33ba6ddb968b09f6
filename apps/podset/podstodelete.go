package podset

import (
	"cmp"
	"slices"
	"time"
)

// PodsToDelete returns the n pods to delete first, in the order of a ReplicaSet. The order
// is: no node; pending, then unknown, then running; not ready; lower deletion cost; more
// pods on the same node; ready for a shorter time; more restarts; younger. The name is
// last, so that the same world always gives the same pods.
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

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// younger orders the later time first. An unknown time counts as now.
func younger(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return first(a.IsZero(), b.IsZero())
	}
	return b.Compare(a)
}
