package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// child makes the object a dependent of the parent, which the parent's foreground deletion waits for.
func child(t *testing.T, parent *corev1.ConfigMap, obj client.Object) {
	t.Helper()
	base := obj.DeepCopyObject().(client.Object)
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: parent.Name, UID: parent.UID, BlockOwnerDeletion: new(true),
	}})
	if err := api.Patch(t.Context(), obj, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

// isGone returns an error while the ConfigMap exists.
func isGone(ctx context.Context, cm *corev1.ConfigMap) error {
	if err := api.Get(ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s is there: %w", errNotYet, cm.Name, err)
	}
	return nil
}

// TestEtcdForegroundDeletionOfParentWaitsForPolicy: Kubernetes deletes the dependents of a parent that is deleted in the
// foreground. A cluster with a held deletion continues to serve, and both are deleted when the policy is removed.
func TestEtcdForegroundDeletionOfParentWaitsForPolicy(t *testing.T) {
	c := formed(t, 1)
	parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "parent"}}
	sibling := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "sibling"}}
	for _, cm := range []*corev1.ConfigMap{parent, sibling} {
		if err := api.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	child(t, parent, sibling)
	child(t, parent, c.get(t))
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} })
	eventually(t, "the policy can hold the deletion", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return len(obj.Finalizers) > 0 })
	})
	before, err := c.belongings(t.Context(), append(serves(), stores()...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(t.Context(), parent, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the garbage collector deletes the dependents", func(ctx context.Context) error { return isGone(ctx, sibling) })
	if err := isGone(t.Context(), parent); err == nil {
		t.Error("the parent went before the cluster")
	}
	now, err := c.belongings(t.Context(), append(serves(), stores()...)...)
	if err != nil || len(now) != len(before) || !apimeta.IsStatusConditionTrue(c.get(t).Status.Conditions, lifecycle.ConditionReady) {
		t.Errorf("there are %v, %v, and there were %v", now, err, before)
	}
	must(t, "delete", "operationpolicy", c.key.Namespace)
	eventually(t, "the parent is deleted after the cluster", func(ctx context.Context) error { return isGone(ctx, parent) })
	c.gone(t, 1)
}
