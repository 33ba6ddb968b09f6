package lifecycle

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Sentinel is an optional ability of a [Driver]: it detects what no watch of Kubernetes
// reports, such as a leader that is cut off. It costs less than frequent reconciles.
type Sentinel interface {
	// Guard calls wake for an object that needs a reconcile, until the context ends.
	Guard(ctx context.Context, wake func(types.NamespacedName))
}
