package lifecycle

import "context"

// NodeMaintenance names nodes that are in planned maintenance.
type NodeMaintenance struct {
	// By says who names them, for users, e.g. the policy "rack-7".
	By string
	// Covers reports whether the node is one of them. Its labels are nil if they are not
	// known, e.g. of a Node object that is gone.
	Covers func(node string, labels map[string]string) bool
}

type maintenanceKey struct{}

// WithMaintenance returns a context for [Driver.Observe] and [Driver.Act]. The engine
// passes on what policies say about the object.
func WithMaintenance(ctx context.Context, all []NodeMaintenance) context.Context {
	if len(all) == 0 {
		return ctx
	}
	return context.WithValue(ctx, maintenanceKey{}, all)
}

// MaintenanceBy returns who says that the node is in planned maintenance, empty if nobody
// does. An application that replaces what is lost waits for such a node instead.
func MaintenanceBy(ctx context.Context, node string, labels map[string]string) string {
	all, _ := ctx.Value(maintenanceKey{}).([]NodeMaintenance)
	for _, m := range all {
		if m.Covers(node, labels) {
			return m.By
		}
	}
	return ""
}
