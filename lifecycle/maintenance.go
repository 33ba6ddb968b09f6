package lifecycle

import "context"

// NodeMaintenance names nodes that are in planned maintenance.
type NodeMaintenance struct {
	// By is the origin of the maintenance, for users, e.g. the policy "rack-7".
	By string
	// Covers reports whether the node is one of them. The labels are nil if they are not
	// known, e.g. because the Node object is gone.
	Covers func(node string, labels map[string]string) bool
}

type maintenanceKey struct{}

// WithMaintenance returns a context for [Driver.Observe] and [Driver.Act] with the
// maintenance that policies declare for the object.
func WithMaintenance(ctx context.Context, all []NodeMaintenance) context.Context {
	if len(all) == 0 {
		return ctx
	}
	return context.WithValue(ctx, maintenanceKey{}, all)
}

// MaintenanceBy returns the origin of the planned maintenance of the node, empty if there is
// none. An application waits for such a node instead of replacing what runs on it.
func MaintenanceBy(ctx context.Context, node string, labels map[string]string) string {
	all, _ := ctx.Value(maintenanceKey{}).([]NodeMaintenance)
	for _, m := range all {
		if m.Covers(node, labels) {
			return m.By
		}
	}
	return ""
}
