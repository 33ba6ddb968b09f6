package wake

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
)

// podOf is a pod of the instance.
func podOf(instance string, phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Labels, p.ResourceVersion = instance+"-0", map[string]string{lifecycle.LabelInstance: instance}, string(phase+" ")+string(ready)
	p.Status.Phase = phase
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	if ready != "" {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready})
	}
	return p
}

// quick is an ear that waits for no more news.
var quick = OwnedHandler{Heard: func(types.NamespacedName) {}}

// wishes is how many objects are in the queue before the one that lost something.
const wishes = 1000

// place is after how many other turns the object "lost" gets its own, if one worker
// takes all turns and the event about its pod comes last.
func place(t *testing.T, happens func(q Queue)) int {
	t.Helper()
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	for i := range wishes {
		pod := podOf(fmt.Sprint(i), corev1.PodPending, "")
		quick.Handler().Create(t.Context(), event.CreateEvent{Object: pod}, q)
	}
	happens(q)
	for turns := range wishes + 1 {
		req, _, _ := q.GetWithPriority()
		q.Done(req)
		if req.Name == "lost" {
			return turns
		}
	}
	t.Fatal("it gets no turn")
	return 0
}

func TestLostPodsHavePriorityOverChanges(t *testing.T) {
	const running, failed, succeeded = corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	cases := map[string]struct {
		reason      string
		before, now *corev1.Pod
		want        int
	}{
		"Unready":   {"a server no longer answers", podOf("lost", running, yes), podOf("lost", running, no), 0},
		"Unknown":   {"nor is it known of a lost node's", podOf("lost", running, yes), podOf("lost", running, unknown), 0},
		"Failed":    {"an evicted pod comes back as another", podOf("lost", running, no), podOf("lost", failed, no), 0},
		"Succeeded": {"so does one that finished", podOf("lost", running, no), podOf("lost", succeeded, no), 0},
		"Ready":     {"good news can wait", podOf("lost", running, no), podOf("lost", running, yes), wishes},
		"Starting":  {"what never answered was not lost", podOf("lost", corev1.PodPending, ""), podOf("lost", running, no), wishes},
		"StillDown": {"a loss is reported once", podOf("lost", failed, no), podOf("lost", failed, unknown), wishes},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := place(t, func(q Queue) {
				quick.Handler().Update(t.Context(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.now}, q)
			})
			if got != c.want {
				t.Errorf("%s: its turn comes after %d others, want %d", c.reason, got, c.want)
			}
		})
	}
	t.Run("PassedOn", func(t *testing.T) {
		got := place(t, func(q Queue) {
			quick.Handler().Update(t.Context(), event.UpdateEvent{ObjectOld: podOf("lost", running, yes), ObjectNew: podOf("other", running, yes)}, q)
		})
		if got != 0 {
			t.Errorf("what passes to another is lost to the one: its turn comes after %d others", got)
		}
	})
	t.Run("Deleted", func(t *testing.T) {
		got := place(t, func(q Queue) {
			quick.Handler().Delete(t.Context(), event.DeleteEvent{Object: podOf("lost", running, yes)}, q)
		})
		if got != 0 {
			t.Errorf("a deleted pod is a loss: its turn comes after %d others", got)
		}
	})
	t.Run("Queued", func(t *testing.T) {
		got := place(t, func(q Queue) {
			quick.Handler().Create(t.Context(), event.CreateEvent{Object: podOf("lost", running, yes)}, q)
			quick.Handler().Update(t.Context(), event.UpdateEvent{
				ObjectOld: podOf("lost", running, yes), ObjectNew: podOf("lost", running, no),
			}, q)
		})
		if got != 0 {
			t.Errorf("a waiting object does not move up: %d others are before it", got)
		}
	})
}

// Hundreds of news about what belongs to one object are one turn.
func TestEventsOfOneObjectAreBatched(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	const gather = 20 * time.Millisecond
	heard := map[string]int{}
	slow := OwnedHandler{Gather: gather, Heard: func(key types.NamespacedName) { heard[key.Name]++ }}
	began := time.Now()
	for range 500 {
		slow.Handler().Delete(t.Context(), event.DeleteEvent{Object: podOf("lost", corev1.PodRunning, corev1.ConditionTrue)}, q)
	}
	slow.Handler().Create(t.Context(), event.CreateEvent{Object: podOf("last", corev1.PodRunning, corev1.ConditionTrue)}, q)
	for _, want := range []string{"lost", "last"} {
		req, _, _ := q.GetWithPriority()
		if q.Done(req); req.Name != want || time.Since(began) < gather {
			t.Errorf("after %s it is the turn of %s, want %s after %s", time.Since(began), req.Name, want, gather)
		}
	}
	if q.Len() != 0 || heard["lost"] != 500 || heard["last"] != 1 {
		t.Errorf("%d turns are left, and each of the news is heard: %v", q.Len(), heard)
	}
}
