package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/apps/etcd/contract"
	"github.com/governor-dev/governor/lifecycle"
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
	c.replacesAll(t, c.DeleteClaims)
}

// TestEtcdKeepsEveryWriteWhilePersistentVolumesAreLost: an administrator deletes the PersistentVolumes of all claims,
// and the finalizers that protect them.
func TestEtcdKeepsEveryWriteWhilePersistentVolumesAreLost(t *testing.T) {
	c := formed(t, 3)
	c.replacesAll(t, c.losePersistentVolumes)
}

// TestEtcdKeepsEveryWriteWhileClaimsAreRemoved: a user deletes all claims, and the finalizers that keep them while
// pods use them. The PersistentVolumes stay, as an administrator has asked for.
func TestEtcdKeepsEveryWriteWhileClaimsAreRemoved(t *testing.T) {
	c := formed(t, 3)
	c.replacesAll(t, func(t *testing.T, members ...string) {
		t.Helper()
		for _, m := range members {
			c.removeClaim(t, client.ObjectKey{Namespace: c.key.Namespace, Name: etcd.ClaimName(c.get(t), m)})
		}
	})
}

func (c *cluster) removeClaim(t *testing.T, key client.ObjectKey) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := api.Get(t.Context(), key, claim); err != nil {
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	retain := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`))
	if err := api.Patch(t.Context(), volume, retain); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), volume) })
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := errors.Join(api.Delete(t.Context(), claim), client.IgnoreNotFound(api.Patch(t.Context(), claim, strip))); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) losePersistentVolumes(t *testing.T, members ...string) {
	t.Helper()
	for _, m := range members {
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: c.key.Namespace, Name: etcd.ClaimName(c.get(t), m)}
		if err := api.Get(t.Context(), key, claim); err != nil {
			t.Fatal(err)
		}
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := errors.Join(api.Delete(t.Context(), volume), api.Patch(t.Context(), volume, strip)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the claim of "+m+" is Lost", func(ctx context.Context) error {
			if err := api.Get(ctx, key, claim); err != nil || claim.Status.Phase != corev1.ClaimLost {
				return errors.Join(err, fmt.Errorf("%w: %s", errNotYet, claim.Status.Phase))
			}
			return nil
		})
	}
}

// replacesAll checks that every member is replaced while a client writes.
func (c *cluster) replacesAll(t *testing.T, lose func(t *testing.T, members ...string)) {
	t.Helper()
	before, w := c.get(t), c.write(t)
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 50) })
	for _, m := range before.Status.Members {
		lose(t, m.Name)
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

// With driftPolicy Report, edits stay on which nothing depends. What the service depends on is restored, also beside
// them, and changes of the spec go on.
func TestEtcdReportsHarmlessEdits(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Annotations = map[string]string{"example.com/note": "a"} })
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.DriftPolicy = v1alpha1.DriftPolicyReport })
	annotate := func(s *appsv1.StatefulSet) { s.Spec.Template.Annotations["example.com/note"] = "b" }
	c.editSet(t, "etcd-0", annotate)
	drift := "StatefulSet etcd-0 (spec.template.metadata.annotations.example.com/note)"
	eventually(t, "the edit is reported", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		if f := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionDrifted); f == nil || !strings.Contains(f.Message, drift) {
			return fmt.Errorf("%w: Drifted is %v", errNotYet, f)
		}
		return tells(obj, lifecycle.OutcomeSettled, "AsDeclared")
	})
	c.editSet(t, "etcd-1", func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(0)) })
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 4 })
	eventually(t, "replicas are restored, and a member is added", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		if len(obj.Status.Members) != 4 {
			return fmt.Errorf("%w: members are %v", errNotYet, obj.Status.Members)
		}
		return tells(obj, lifecycle.OutcomeSettled, "AsDeclared")
	})
	set := &appsv1.StatefulSet{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: "etcd-0"}, set); err != nil {
		t.Fatal(err)
	}
	if note := set.Spec.Template.Annotations["example.com/note"]; note != "b" {
		t.Errorf("the annotation is %q, and must stay", note)
	}
}

// TestEtcdRemovesWhatEndangersTheData: a variable that a user adds to a member's StatefulSet would fork the cluster at the next
// restart, and a volume over the data directory would make the member's data seem lost. Governor removes both before.
func TestEtcdRemovesWhatEndangersTheData(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	c.editSet(t, "etcd-0", func(s *appsv1.StatefulSet) {
		first := &s.Spec.Template.Spec.Containers[0]
		first.Env = append(first.Env, corev1.EnvVar{Name: "ETCD_FORCE_NEW_CLUSTER", Value: "true"})
	})
	c.editSet(t, "etcd-1", func(s *appsv1.StatefulSet) {
		pod := &s.Spec.Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "over", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "over", MountPath: "/var/lib/etcd/data"})
	})
	eventually(t, "both are removed", func(ctx context.Context) error {
		for _, member := range []string{"etcd-0", "etcd-1"} {
			set := &appsv1.StatefulSet{}
			if err := api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: member}, set); err != nil {
				return err
			}
			if etcd.EndangersData(before, set.Spec.Template.Spec) {
				return fmt.Errorf("%w: %s has %v", errNotYet, member, set.Spec.Template.Spec.Containers[0])
			}
		}
		return nil
	})
	c.LosePods(t, "etcd-0")
	c.settled(t)
	c.LosePods(t, "etcd-1")
	same(t, before, c.settled(t))
	kept(t, w)
}
