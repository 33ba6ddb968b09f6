package lifecycle

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Sentinel is an optional ability of a [Driver]: it notices what no watch of Kubernetes reports,
// such as a leader that is cut off. It is cheaper than frequent turns.
type Sentinel interface {
	// Guard calls wake for an object that needs a turn, until the context ends.
	Guard(ctx context.Context, wake func(types.NamespacedName))
}
