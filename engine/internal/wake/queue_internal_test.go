package wake

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Before the controller runs there is no queue, and nothing to add to.
func TestRunning(t *testing.T) {
	var r Running
	if r.Add(types.NamespacedName{Name: "a"}); r.Len() != 0 {
		t.Errorf("it has %d objects", r.Len())
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	r.Begin(q)
	if r.Add(types.NamespacedName{Name: "a"}); r.Len() != 1 {
		t.Errorf("it has %d objects", r.Len())
	}
}
