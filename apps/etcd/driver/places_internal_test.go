package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// Only nodes on which the scheduler would put a new member are places.
func TestPlaces(t *testing.T) {
	node := func(name string, edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "z-" + name, "disk": "ssd"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		edit(n)
		return n
	}
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: effect}} }
	}
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		node("free", func(*corev1.Node) {}), node("cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node("off", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node("tainted", taint(corev1.TaintEffectNoSchedule)), node("disliked", taint(corev1.TaintEffectPreferNoSchedule)),
		node("slow", func(n *corev1.Node) { n.Labels["disk"] = "hdd" }),
	).Build()
	tolerant := plain("")
	tolerant.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	bound := plain("")
	bound.Spec.Pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
	manual := plain("")
	for name, c := range map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		places []string
	}{
		"Plain":    {"taints keep pods away", plain(""), []string{"disliked", "free"}},
		"Tolerant": {"the pods tolerate the taint", tolerant, []string{"disliked", "free", "tainted"}},
		"Bound":    {"only the scheduler knows", bound, nil},
		"Manual":   {"the spec does not request it", manual, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want.Spec.Size = 3; c.want != manual {
				c.want.Spec.Rebalance = etcdv1.RebalanceAutomatic
			}
			c.want.Spec.Pod.NodeSelector = map[string]string{"disk": "ssd"}
			w := etcd.World{Listed: true}
			for _, name := range []string{"my-etcd-0", "my-etcd-1", "my-etcd-2"} {
				w.Members = append(w.Members, etcd.Member{Name: name, Role: etcd.Voter, Pod: etcd.Pod{Node: "free", Zone: "z-free"}})
			}
			d := &Driver{live: reader, now: func() time.Time { return noon }, places: &places{}}
			d.findPlaces(t.Context(), c.want, &w)
			var got []string
			for _, p := range w.Places {
				got = append(got, p.Node)
				if p.Zone != "z-"+p.Node {
					t.Errorf("%s is in the zone %s", p.Node, p.Zone)
				}
			}
			if diff := cmp.Diff(c.places, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// While the API server does not answer, the places of the last time stay: a move that has begun goes on.
func TestPlacesStayWhileNodesCannotBeRead(t *testing.T) {
	fails := false
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "free"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if fails {
				return errors.New("away")
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	now := noon
	d := &Driver{live: reader, now: func() time.Time { return now }, places: &places{}}
	before := len(d.ready(t.Context()))
	now, fails = now.Add(time.Hour), true
	if after := len(d.ready(t.Context())); before != 1 || after != 1 {
		t.Errorf("%d nodes before the failure and %d after it, want 1 and 1", before, after)
	}
}
