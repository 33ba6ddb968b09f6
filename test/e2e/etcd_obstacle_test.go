package e2e_test

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

const holds = "example.com/hold"

// HoldSet implements contract.System.
func (c *cluster) HoldSet(t *testing.T, member string) {
	t.Helper()
	c.editSet(t, member, func(s *appsv1.StatefulSet) { s.Finalizers = append(s.Finalizers, holds) })
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: member}}
	t.Cleanup(func() { // or the namespace of a failed test is never deleted
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := api.Patch(context.Background(), set, free); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	if err := api.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

// LetGo implements contract.System.
func (c *cluster) LetGo(t *testing.T, member string) {
	t.Helper()
	c.editSet(t, member, func(s *appsv1.StatefulSet) {
		s.Finalizers = slices.DeleteFunc(s.Finalizers, func(f string) bool { return f == holds })
	})
}

// TakeName implements contract.System.
func (c *cluster) TakeName(t *testing.T, member string) {
	t.Helper()
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: etcd.BootstrapConfigName(member)}}
	if err := api.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
}

// TestEtcdReportsForeignFinalizer: the member serves, the cluster is Ready, and the message
// names the object and the finalizer.
func TestEtcdReportsForeignFinalizer(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	c.HoldSet(t, "etcd-1")
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "DeletionStuck")
	said := condition(t, obj, lifecycle.ConditionStalled).Message
	if !contains(said, "the StatefulSet etcd-1 is being deleted, and the finalizer example.com/hold of another controller keeps it") {
		t.Errorf("the message is %q", said)
	}
	if !contains(said, "remove it with kubectl edit") || obj.Status.ReadyReplicas != 3 {
		t.Errorf("the message is %q, and %d members serve", said, obj.Status.ReadyReplicas)
	}
	c.LetGo(t, "etcd-1")
	same(t, before, c.settled(t))
	kept(t, w)
}
