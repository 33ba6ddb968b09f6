package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/contract"
)

// DeleteClaims implements contract.System.
func (c *cluster) DeleteClaims(t *testing.T, members ...string) {
	t.Helper()
	for _, m := range members {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Namespace, claim.Name = c.key.Namespace, etcd.ClaimName(c.get(t), m)
		if err := api.Delete(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
}

// ScaleSet implements contract.System.
func (c *cluster) ScaleSet(t *testing.T, member string) {
	t.Helper()
	c.editSet(t, member, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(0)) })
}

// EditSet implements contract.System.
func (c *cluster) EditSet(t *testing.T, member string) {
	t.Helper()
	c.editSet(t, member, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "example.invalid/etcd:none" })
}

func (c *cluster) editSet(t *testing.T, member string, edit func(*appsv1.StatefulSet)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		set := &appsv1.StatefulSet{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: member}, set); err != nil {
			return err
		}
		edit(set)
		return api.Update(t.Context(), set, client.FieldOwner("kubectl-edit"))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// OrphanSet implements contract.System.
func (c *cluster) OrphanSet(t *testing.T, member string) {
	t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: member}}
	if err := api.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
}

// StripPod implements contract.System.
func (c *cluster) StripPod(t *testing.T, member, label string) {
	t.Helper()
	strip(t, c.pod(t, member), label)
}

// StripClaim implements contract.System.
func (c *cluster) StripClaim(t *testing.T, member, label string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: c.key.Namespace, Name: etcd.ClaimName(c.get(t), member)}
	if err := api.Get(t.Context(), key, claim); err != nil {
		t.Fatal(err)
	}
	strip(t, claim, label)
}

func strip(t *testing.T, obj client.Object, label string) {
	t.Helper()
	bare := obj.DeepCopyObject().(client.Object)
	delete(bare.GetLabels(), label)
	if err := api.Patch(t.Context(), bare, client.MergeFrom(obj)); err != nil {
		t.Fatal(err)
	}
}

// RespellURL implements contract.System.
func (c *cluster) RespellURL(t *testing.T, member string) {
	t.Helper()
	s := contract.On(c.Observe(t), etcd.UpdatePeerURL, member)
	s.Args[etcd.ArgPeerURL] = strings.Replace(etcd.PeerURL(c.get(t), member), ".svc:", ".svc.cluster.local:", 1)
	c.Await(t, "etcdctl changes the URL of "+member, func() error { return c.Act(t, s) })
}

// TestEtcdKeepsEveryWriteWhileClaimsAreDeleted: all claims are deleted while a client writes,
// and no acknowledged write is lost.
func TestEtcdKeepsEveryWriteWhileClaimsAreDeleted(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 50) })
	for _, m := range before.Status.Members {
		c.DeleteClaims(t, m.Name)
	}
	eventually(t, "all members have other volumes", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		for _, m := range obj.Status.Members {
			if etcd.Number(m.Name) < int64(len(before.Status.Members)) {
				return errNotYet
			}
		}
		return nil
	})
	after := c.settled(t)
	if len(after.Status.Members) != 3 || after.Status.ClusterID != before.Status.ClusterID {
		t.Errorf("the members are %+v of %s", after.Status.Members, after.Status.ClusterID)
	}
	var claims corev1.PersistentVolumeClaimList
	eventually(t, "nothing is left of the old members", func(ctx context.Context) error {
		if err := api.List(ctx, &claims, client.InNamespace(c.key.Namespace)); err != nil {
			return err
		}
		if slices.ContainsFunc(claims.Items, func(p corev1.PersistentVolumeClaim) bool { return p.DeletionTimestamp != nil }) {
			return errNotYet
		}
		return atLeast(3, len(claims.Items))
	})
	kept(t, w)
	if gap := w.Stats().LongestGap; gap > election {
		t.Errorf("no client could write for %s", gap)
	}
}
