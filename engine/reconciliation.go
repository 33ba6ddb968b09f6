package engine

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
)

// reconciliation is one reconcile of one object: the object, the world that it was decided in,
// and the result, which is published.
type reconciliation[T lifecycle.Resource, W any] struct {
	publish.Result

	obj  T // the same as Result.Object
	seen W
	// actFor is the object that the step acts for: obj, or obj with the spec that worked last.
	actFor T
	// actIn is the world that the step was decided in: observed for actFor; nil for seen.
	actIn *W

	// heldIn is where a held deletion was judged; nil if policies hold none.
	heldIn *deletionWorld[T, W]
}

func newReconciliation[T lifecycle.Resource, W any](obj T, author string, began time.Time) *reconciliation[T, W] {
	own := obj.DeepCopyObject().(T)
	return &reconciliation[T, W]{
		Result: publish.Result{Key: client.ObjectKeyFromObject(obj), Before: obj, Object: own, Author: author, Began: began}, obj: own, actFor: own,
	}
}

// decidedIn is the world that the step was decided in.
func (r *reconciliation[T, W]) decidedIn() W {
	if r.actIn != nil {
		return *r.actIn
	}
	return r.seen
}
