package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

func retention(r etcdv1.Retention) func(*etcdv1.EtcdClusterSpec) {
	return func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Retention = r }
}

// belongings are the objects of the cluster that are not being deleted, as kind/name.
func (c *cluster) belongings(ctx context.Context, lists ...client.ObjectList) ([]string, error) {
	var all []string
	for _, list := range lists {
		err := api.List(ctx, list, client.InNamespace(c.key.Namespace), client.MatchingLabels{lifecycle.LabelInstance: c.key.Name})
		if err != nil {
			return nil, err
		}
		_ = apimeta.EachListItem(list, func(obj runtime.Object) error {
			if o := obj.(client.Object); o.GetDeletionTimestamp() == nil {
				all = append(all, fmt.Sprintf("%T/%s", obj, o.GetName()))
			}
			return nil
		})
	}
	slices.Sort(all)
	return all, nil
}

func runs() []client.ObjectList {
	return []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.PodList{}}
}

func serves() []client.ObjectList {
	return append(runs(), &corev1.ServiceList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &policyv1.PodDisruptionBudgetList{})
}

func stores() []client.ObjectList { return []client.ObjectList{&corev1.PersistentVolumeClaimList{}} }

// isDeleted deletes the cluster, and waits until the object and the listed dependents are deleted.
func (c *cluster) isDeleted(t *testing.T, how metav1.DeletionPropagation, keeps etcdv1.Retention) {
	t.Helper()
	before, err := c.belongings(t.Context(), serves()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(t.Context(), c.get(t), client.PropagationPolicy(how)); err != nil {
		t.Fatal(err)
	}
	orphan, volumes := how == metav1.DeletePropagationOrphan, 0
	if orphan || keeps == etcdv1.RetentionRetain {
		volumes = 1
	}
	eventually(t, fmt.Sprintf("%s deletion with %s ends", how, keeps), func(ctx context.Context) error {
		if _, err := c.read(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: the object is there: %w", errNotYet, err)
		}
		left, err := c.belongings(ctx, serves()...)
		stored, err2 := c.belongings(ctx, stores()...)
		switch {
		case err != nil || err2 != nil:
			return fmt.Errorf("%w, %w", err, err2)
		case orphan && !slices.Equal(left, before), !orphan && len(left) > 0, len(stored) != volumes:
			return fmt.Errorf("%w: left are %v, %v", errNotYet, left, stored)
		}
		return nil
	})
}

// TestEtcdDeletionCascades: every cascade has the same effect as for a Deployment, with deleted and with retained
// volumes, and without the operator.
func TestEtcdDeletionCascades(t *testing.T) {
	type way struct {
		how   metav1.DeletionPropagation
		keeps etcdv1.Retention
	}
	clusters := map[way]*cluster{}
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		for _, keeps := range []etcdv1.Retention{etcdv1.RetentionDelete, etcdv1.RetentionRetain} {
			c := lonelyCluster(t)
			c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.TLS.Mode = 1, etcdv1.TLSModeManaged })
			c.Apply(t, retention(keeps)) // the user reverts the change
			clusters[way{how, keeps}] = c
		}
	}
	for _, c := range clusters {
		c.settled(t)
	}
	must(t, "-n", "governor-system", "scale", "deployment/governor", "--replicas=0")
	must(t, "-n", "governor-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=governor", "--timeout=5m")
	t.Cleanup(func() {
		if err := install(); err != nil {
			t.Error(err)
		}
	})
	for w, c := range clusters {
		c.isDeleted(t, w.how, w.keeps)
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	probe := lonelyCluster(t)
	probe.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	probe.settled(t) // the operator reconciles
	for w, c := range clusters {
		left, err := c.belongings(t.Context(), append(runs(), stores()...)...)
		if w.how == metav1.DeletePropagationOrphan && (err != nil || len(left) != 3) {
			t.Errorf("of the orphaned cluster (%s) there are %v, %v", w.keeps, left, err)
		}
	}
}

// TestEtcdHeldDeletionKeepsEverything: while a policy holds a deletion, clients read and write, no object that serves or
// protects them is deleted, and the status reports both. After the removal of the policy the cluster is deleted.
func TestEtcdHeldDeletionKeepsEverything(t *testing.T) {
	c := formed(t, 3)
	w := c.write(t)
	before, err := c.belongings(t.Context(), append(serves(), stores()...)...)
	if err != nil {
		t.Fatal(err)
	}
	c.freezes(t)
	remove := []string{"-n", c.key.Namespace, "delete", "etcdcluster", c.key.Name, "--wait=false"}
	if out, err := kubectl(append(remove, "--cascade=orphan")...); err == nil || !strings.Contains(err.Error(), "use --cascade=background") {
		t.Errorf("what cannot be held is not refused: %s, %v", out, err)
	}
	eventually(t, "kubectl says what stays and what holds it", func(context.Context) error {
		said := must(t, append(remove, "--dry-run=server")...)
		if !strings.Contains(said, "their 3 volumes stay with the data. To delete the data too: kubectl delete pvc") || !strings.Contains(said, "frozen (sale)") {
			return fmt.Errorf("%w: it says %s", errNotYet, said)
		}
		return nil
	})
	must(t, remove...)
	eventually(t, "the status says that the deletion is held, and that all serve", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return apimeta.IsStatusConditionTrue(obj.Status.Conditions, lifecycle.ConditionDeletionHeld) &&
				apimeta.IsStatusConditionTrue(obj.Status.Conditions, lifecycle.ConditionReady) && obj.Status.Ready == "3/3"
		})
	})
	written, lost := w.Stats().Acknowledged, c.pod(t, "etcd-1").UID
	c.LosePods(t, "etcd-1")
	eventually(t, "members are looked after", func(ctx context.Context) error {
		p := &corev1.Pod{}
		if err := api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: "etcd-1-0"}, p); err != nil || p.UID == lost {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return tells(obj, lifecycle.OutcomeSettled, "AsDeclared") == nil && obj.Status.Ready == "3/3"
		})
	})
	eventually(t, "clients go on writing", func(context.Context) error { return atLeast(w.Stats().Acknowledged, written+20) })
	kept(t, w)
	if now, err := c.belongings(t.Context(), append(serves(), stores()...)...); err != nil || !slices.Equal(now, before) {
		t.Errorf("there are %v, %v, and there were %v", now, err, before)
	}
	must(t, "delete", "operationpolicy", c.key.Namespace)
	c.gone(t, 3)
}

// TestEtcdHeldDeletionOutlivesItsStatefulSets: users who delete the StatefulSets do not pass the policy that holds the deletion.
// The members return.
func TestEtcdHeldDeletionOutlivesItsStatefulSets(t *testing.T) {
	c := formed(t, 1)
	c.freezes(t)
	in := func(args ...string) {
		must(t, append([]string{"-n", c.key.Namespace, "delete", "--wait=false"}, args...)...)
	}
	in("etcdcluster", c.key.Name)
	for _, cascade := range []string{"orphan", "background"} {
		set := &appsv1.StatefulSet{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: "etcd-0"}, set); err != nil {
			t.Fatal(err)
		}
		in("statefulset", "--all", "--cascade="+cascade)
		eventually(t, "the member returns ("+cascade+")", func(ctx context.Context) error {
			now := &appsv1.StatefulSet{}
			if err := api.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil || now.UID == set.UID {
				return fmt.Errorf("%w: %w", errNotYet, err)
			}
			return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return heldBy(obj, "sale") && obj.Status.Ready == "1/1" })
		})
	}
	must(t, "delete", "operationpolicy", c.key.Namespace)
	c.gone(t, 1)
}

// TestEtcdNamespaceWaitsForThePolicy: Kubernetes deletes what is in the namespace, and the cluster waits until the policy permits
// its deletion.
func TestEtcdNamespaceWaitsForThePolicy(t *testing.T) {
	c := formed(t, 1)
	c.freezes(t)
	must(t, "delete", "namespace", c.key.Namespace, "--wait=false")
	eventually(t, "the members are gone, and the status says what holds the cluster", func(ctx context.Context) error {
		left, err := c.belongings(ctx, &appsv1.StatefulSetList{}, &corev1.PodList{})
		if err != nil || len(left) > 0 {
			return fmt.Errorf("%w: %v, %w", errNotYet, left, err)
		}
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			ready := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionReconciling)
			return obj.DeletionTimestamp != nil && ready != nil && strings.Contains(ready.Message, "frozen (sale)")
		})
	})
	must(t, "delete", "operationpolicy", c.key.Namespace)
	eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKey{Name: c.key.Namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return nil
	})
}

// freezes creates a policy that can hold the deletion of the cluster.
func (c *cluster) freezes(t *testing.T) {
	t.Helper()
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} })
	eventually(t, "the policy can hold the deletion", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return len(obj.Finalizers) > 0 })
	})
}

// uids are those of all objects of the cluster, by kind and name.
func (c *cluster) uids(t *testing.T) map[string]types.UID {
	t.Helper()
	all := map[string]types.UID{}
	for _, list := range append(serves(), stores()...) {
		err := api.List(t.Context(), list, client.InNamespace(c.key.Namespace), client.MatchingLabels{lifecycle.LabelInstance: c.key.Name})
		if err != nil {
			t.Fatal(err)
		}
		_ = apimeta.EachListItem(list, func(obj runtime.Object) error {
			o := obj.(client.Object)
			all[fmt.Sprintf("%T/%s", obj, o.GetName())] = o.GetUID()
			return nil
		})
	}
	return all
}

// TestEtcdOrphansContinueToServe with a running operator, also after the creation of a cluster of the same name, which
// reports that the name is taken.
func TestEtcdOrphansContinueToServe(t *testing.T) {
	c := formed(t, 1, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
	before := c.uids(t)
	c.isDeleted(t, metav1.DeletePropagationOrphan, etcdv1.RetentionRetain)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.TLS.Mode = 1, etcdv1.TLSModeManaged })
	eventually(t, "the name is taken", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		return tells(obj, lifecycle.OutcomeBlocked, "NameTaken")
	})
	same := func(when string) {
		t.Helper()
		after := c.uids(t)
		for name, uid := range before {
			if after[name] != uid && !strings.Contains(name, "StatefulSet") {
				t.Errorf("%s: %s was %s and is %s", when, name, uid, after[name])
			}
		}
	}
	same("the name is taken")
	sets := &appsv1.StatefulSet{}
	if err := api.DeleteAllOf(t.Context(), sets, client.InNamespace(c.key.Namespace), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods alone take the name", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		if ready := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionReady); !strings.Contains(ready.Message, "runs: Pod ") {
			return fmt.Errorf("Ready says %s", ready.Message)
		}
		return nil
	})
	same("the StatefulSets are deleted")
	if err := api.Delete(t.Context(), c.get(t), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second cluster and its objects are deleted", func(ctx context.Context) error {
		if _, err := c.read(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return nil
	})
	same("the second cluster is deleted")
}

// gone waits until only the given number of volumes is left of the cluster.
func (c *cluster) gone(t *testing.T, volumes int) {
	t.Helper()
	eventually(t, "the cluster is deleted", func(ctx context.Context) error {
		left, err := c.belongings(ctx, serves()...)
		stored, err2 := c.belongings(ctx, stores()...)
		if err != nil || err2 != nil || len(left) > 0 || len(stored) != volumes {
			return fmt.Errorf("%w: left are %v, %v, %w, %w", errNotYet, left, stored, err, err2)
		}
		return nil
	})
}
