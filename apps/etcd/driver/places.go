package driver

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// placesFresh is the maximum age of the list of all nodes. It is read only while a member is to
// move, and all clusters share it.
const placesFresh = time.Minute

// places caches all nodes on which pods may be scheduled.
type places struct {
	mu    sync.Mutex
	nodes []corev1.Node
	read  time.Time
}

// findPlaces adds where a new member could run, if the planner needs it. Without permission to
// list nodes there are no places, and no member moves.
func (d *Driver) findPlaces(ctx context.Context, want *etcdv1.EtcdCluster, w *etcd.World) {
	if !etcd.NeedsPlaces(want, *w) {
		return
	}
	for _, n := range d.ready(ctx) {
		if admits(ctx, want, &n) {
			w.Places = append(w.Places, etcd.Place{Node: n.Name, Zone: zoneOf(&n)})
		}
	}
	slices.SortFunc(w.Places, func(a, b etcd.Place) int {
		if a.Node < b.Node {
			return -1
		}
		return 1
	})
}

// ready returns the nodes that are ready and not cordoned. Where they cannot be read it returns those
// of the last time: without places, a move that has begun would be undone.
func (d *Driver) ready(ctx context.Context) []corev1.Node {
	d.places.mu.Lock()
	defer d.places.mu.Unlock()
	if now := d.now(); now.Sub(d.places.read) >= placesFresh {
		var all corev1.NodeList
		if err := d.live.List(ctx, &all); err != nil {
			return d.places.nodes
		}
		d.places.read, d.places.nodes = now, nil
		for i := range all.Items {
			if n := &all.Items[i]; !n.Spec.Unschedulable && nodeReady(n) {
				d.places.nodes = append(d.places.nodes, trimmed(n))
			}
		}
	}
	return d.places.nodes
}

// trimmed keeps the needed fields of a node: its images and conditions need far more memory.
func trimmed(n *corev1.Node) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Spec: corev1.NodeSpec{Taints: n.Spec.Taints}}
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// admits reports whether the node's labels and taints permit a member. Only the scheduler
// evaluates node affinity: with required rules, no node counts.
func admits(ctx context.Context, want *etcdv1.EtcdCluster, n *corev1.Node) bool {
	pod := want.Spec.Pod
	if a := pod.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return false
	}
	if !labels.SelectorFromSet(pod.NodeSelector).Matches(labels.Set(n.Labels)) {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(logf.FromContext(ctx), &taint, false)
		})
	})
}
