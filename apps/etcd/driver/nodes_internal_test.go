package driver

import (
	"context"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// TestNodeMaintenanceFromPolicies: a policy may select a node by its name, also without its
// Node object, or by its labels. Healthy members wait for nothing.
func TestNodeMaintenanceFromPolicies(t *testing.T) {
	named := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "named", Labels: map[string]string{"rack": "7"}}}
	off := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "off"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	rack := lifecycle.NodeMaintenance{By: "rack", Covers: func(_ string, l map[string]string) bool { return l["rack"] == "7" }}
	gone := lifecycle.NodeMaintenance{By: "gone", Covers: func(node string, l map[string]string) bool { return node == "gone" && l == nil }}
	members := []etcd.Member{
		{Name: "down", Pod: etcd.Pod{Node: "named"}},
		{Name: "healthy", Pod: etcd.Pod{Node: "named"}, Health: etcd.Healthy},
		{Name: "gone", Pod: etcd.Pod{Node: "gone"}},
		{Name: "cordoned", Pod: etcd.Pod{Node: "off"}},
	}
	d := &Driver{live: fake.NewClientBuilder().WithObjects(named, off).Build(), now: time.Now, nodes: newNodes()}
	d.findNodes(lifecycle.WithMaintenance(t.Context(), []lifecycle.NodeMaintenance{rack, gone}), plain(""), parts{}, members)
	want := map[string][2]string{"down": {"named", "rack"}, "gone": {"gone", "gone"}, "cordoned": {"off", ""}}
	for _, m := range members {
		if got := [2]string{m.Maintenance, m.MaintenanceBy}; got != want[m.Name] {
			t.Errorf("%s: %v, want %v", m.Name, got, want[m.Name])
		}
	}
}

// TestNodeMaintenanceFromCordon looks at members on a cordoned node, at ones whose volume is
// there, and at a node that cannot be read.
func TestNodeMaintenanceFromCordon(t *testing.T) {
	off := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "off", Labels: map[string]string{corev1.LabelTopologyZone: "a"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}
	on := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "on", Labels: map[string]string{corev1.LabelTopologyZone: "b"}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{selectedNode: "off"}}}
	members := []etcd.Member{
		{Name: "down", Pod: etcd.Pod{Node: "off"}},
		{Name: "healthy", Pod: etcd.Pod{Node: "off"}, Health: etcd.Healthy},
		{Name: "drained"},
		{Name: "fine", Pod: etcd.Pod{Node: "on"}},
		{Name: "gone", Pod: etcd.Pod{Node: "gone"}},
		{Name: "nowhere"},
	}
	d := &Driver{live: fake.NewClientBuilder().WithObjects(off, on).Build(), now: time.Now, nodes: newNodes()}
	d.findNodes(t.Context(), plain(""), parts{claims: map[string]*corev1.PersistentVolumeClaim{"drained": claim}}, members)
	want := map[string][2]string{"down": {"off", "a"}, "healthy": {"", "a"}, "drained": {"off", "a"}, "fine": {"", "b"}}
	for _, m := range members {
		if got := [2]string{m.Maintenance, m.Pod.Zone}; got != want[m.Name] {
			t.Errorf("%s: %v, want %v", m.Name, got, want[m.Name])
		}
	}
}

// observer is the driver of an operator that reports what it observes of the member m.
func observer(api client.Reader, clock *time.Time) func(*testing.T, *etcdv1.EtcdCluster, ...lifecycle.NodeMaintenance) etcd.Member {
	d := &Driver{live: api, now: func() time.Time { return *clock }, nodes: newNodes()}
	return func(t *testing.T, want *etcdv1.EtcdCluster, all ...lifecycle.NodeMaintenance) etcd.Member {
		t.Helper()
		members := []etcd.Member{{Name: "m", Role: etcd.Voter, Set: etcd.Set{Exists: true}, Pod: etcd.Pod{Node: "n"}}}
		d.findNodes(lifecycle.WithMaintenance(t.Context(), all), want, parts{}, members)
		(etcd.Planner{}).Status(want, etcd.World{Listed: true, Members: members})
		*clock = clock.Add(time.Minute)
		return members[0]
	}
}

// TestEndOfNodeMaintenanceIsRecorded: a member's time to answer begins when its node is
// uncordoned, however long it was silent before, and whichever operator leads.
func TestEndOfNodeMaintenanceIsRecorded(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	api := fake.NewClientBuilder().WithObjects(n).Build()
	clock, want := noon, plain("")
	if m := observer(api, &clock)(t, want); m.Maintenance != "n" || !m.Returned.IsZero() {
		t.Errorf("while the node is cordoned: %+v", m)
	}
	n.Spec.Unschedulable = false
	if err := api.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		observe := observer(api, &clock) // another operator leads
		for range 2 {
			if m := observe(t, want); m.Maintenance != "" || !m.Returned.Equal(noon.Add(time.Minute)) {
				t.Errorf("after the node is uncordoned: %+v", m)
			}
		}
	}
}

// TestMaintenanceOfAHealthyMemberIsForgotten: a failure after that is not part of it.
func TestMaintenanceOfAHealthyMemberIsForgotten(t *testing.T) {
	want := plain("")
	want.Status.Members = []etcdv1.MemberStatus{{Name: "m", Maintenance: &etcdv1.NodeMaintenance{Node: "n"}}}
	(etcd.Planner{}).Status(want, etcd.World{Listed: true, Members: []etcd.Member{{Name: "m", Role: etcd.Voter, Health: etcd.Healthy}}})
	if m := want.Status.Members[0]; m.Maintenance != nil {
		t.Errorf("%+v", m)
	}
}

// TestUnreadableNodeKeepsItsZone: an error of the API server must not look like a node without a
// zone, which would end a rebalance.
func TestUnreadableNodeKeepsItsZone(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	clock, fails, want := noon, false, plain("")
	api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(n).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if fails {
				return apierrors.NewTooManyRequests("later", 1)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	d := &Driver{live: api, now: func() time.Time { return clock }, nodes: newNodes()}
	observe := func() etcd.Member {
		members := []etcd.Member{{Name: "m", Pod: etcd.Pod{Node: "n"}}, {Name: "h", Pod: etcd.Pod{Node: "n"}, Health: etcd.Healthy}}
		d.findNodes(t.Context(), want, parts{}, members)
		(etcd.Planner{}).Status(want, etcd.World{Listed: true, Members: members})
		if members[0].Pod.Zone != members[1].Pod.Zone {
			t.Errorf("one node in two zones: %+v", members)
		}
		clock = clock.Add(time.Minute)
		return members[0]
	}
	observe()
	fails = true
	if m := observe(); m.Pod.Zone != "a" || m.Maintenance != "n" || !m.Returned.IsZero() {
		t.Errorf("while the node cannot be read: %+v", m)
	}
	fails, n.Spec.Unschedulable = false, false
	if err := api.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if m := observe(); m.Pod.Zone != "a" || m.Maintenance != "" || m.Returned.IsZero() {
		t.Errorf("after it is read again: %+v", m)
	}
}

// The same holds when a policy ceases to name the node.
func TestEndOfMaintenanceByPolicyIsRecorded(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).Build()
	clock, want := noon, plain("")
	rack := lifecycle.NodeMaintenance{By: "rack-7", Covers: func(string, map[string]string) bool { return true }}
	observe := observer(api, &clock)
	if m := observe(t, want); !m.Returned.IsZero() {
		t.Errorf("no policy has named the node: %+v", m)
	}
	if m := observe(t, want, rack); m.Maintenance != "n" || !m.Returned.IsZero() {
		t.Errorf("while a policy names the node: %+v", m)
	}
	for range 3 {
		if m := observer(api, &clock)(t, want); m.Maintenance != "" || !m.Returned.Equal(noon.Add(2*time.Minute)) {
			t.Errorf("after it names the node no more: %+v", m)
		}
	}
}

// TestSilenceNamesTheFailedNode: a silent member is unreachable while its node is not
// ready, or deleted.
func TestSilenceNamesTheFailedNode(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(noon)}}
		return n
	}
	members := []etcd.Member{
		{Name: "off", Pod: etcd.Pod{Node: "off"}}, {Name: "on", Pod: etcd.Pod{Node: "on"}}, {Name: "gone", Pod: etcd.Pod{Node: "gone"}},
		{Name: "answers", Pod: etcd.Pod{Node: "off"}, Health: etcd.Unhealthy},
	}
	api := fake.NewClientBuilder().WithObjects(node("off", corev1.ConditionUnknown), node("on", corev1.ConditionTrue)).Build()
	d := &Driver{live: api, now: time.Now, nodes: newNodes()}
	d.findNodes(t.Context(), plain(""), parts{}, members)
	want := map[string]string{"off": "the node off is NotReady since 12:00 UTC", "gone": "the node gone no longer exists"}
	for _, m := range members {
		if m.Silence != want[m.Name] {
			t.Errorf("%s: %q, want %q", m.Name, m.Silence, want[m.Name])
		}
	}
}

// A host that is up answers TCP, also by a refusal.
func TestAnswersTCP(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := open.Addr().String()
	if !answersTCP(t.Context(), address) {
		t.Error("a port that accepts is reached")
	}
	open.Close()
	if !answersTCP(t.Context(), address) {
		t.Error("a host that refuses is reached")
	}
}
