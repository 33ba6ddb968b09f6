package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// refused makes the edit and returns what the user hears.
func (c *cluster) refused(t *testing.T, edit func(*etcdv1.EtcdClusterSpec)) string {
	t.Helper()
	err := c.apply(t.Context(), edit)
	if err == nil {
		t.Fatal("it was not refused")
	}
	return err.Error()
}

// TestEtcdMistakesOfVersion: a typo is refused at once; a release that nobody knows, or
// that cannot be pulled, is told, and nothing happens to the members meanwhile.
func TestEtcdMistakesOfVersion(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	if said := c.refused(t, version("3,6")); !contains(said, `spec.version is "3,6", allowed are releases such as`) {
		t.Errorf("a typo is refused with %q", said)
	}
	c.Apply(t, version("3.99"))
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "UnknownVersion")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, `version "3.99" is not known to this operator, which runs etcd 3.2 to 3.7`) {
		t.Errorf("it is told %q", said)
	}
	c.Apply(t, version("3.6.99"))
	obj = c.Settles(t, lifecycle.OutcomeBlocked, string(lifecycle.PodProblemImagePullBackOff))
	if obj.Status.ReadyReplicas != 2 {
		t.Errorf("one member must have been tried, and two serve: %+v", obj.Status)
	}
	c.Apply(t, version(""))
	same(t, before, c.settled(t))
	kept(t, w)
}

// TestEtcdTheFirstImageIsMissing: a cluster that never formed forms when that is
// corrected, without being made again.
func TestEtcdTheFirstImageIsMissing(t *testing.T) {
	c := newCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Repository = 3, "registry.invalid/no-such/etcd" })
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, string(lifecycle.PodProblemImagePullBackOff)), lifecycle.ConditionStalled).Message
	if !contains(said, "Correct spec.version, spec.repository or spec.image") {
		t.Errorf("it is told %q", said)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Repository = "" })
	c.settled(t)
}

// TestEtcdQuota: a member that there is no room for is told, once in the history, and comes when there is.
func TestEtcdQuota(t *testing.T) {
	c := formed(t, 1)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "one"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("1")}
	if err := api.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is counted", func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Used) == 0 {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return nil
	})
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 2 })
	eventually(t, "it is told", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		return tells(obj, lifecycle.OutcomeBlocked, "QuotaExceeded")
	})
	if err := api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
	var failed []history.Entry
	for _, e := range c.history(t).Entries {
		if e.Result == history.Failed {
			failed = append(failed, e)
		}
	}
	if len(failed) != 1 || failed[0].Step.Name != etcd.StartMember || !contains(failed[0].Message, "exceeded quota: one") {
		t.Errorf("the history has %+v", failed)
	}
}

// TestEtcdPodsAreRefused: the API server's words about a pod that it refuses reach the user.
func TestEtcdPodsAreRefused(t *testing.T) {
	c := newCluster(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := api.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, "FailedCreate"), lifecycle.ConditionReady).Message
	if !contains(said, "exceeded quota: none") {
		t.Errorf("it is told %q", said)
	}
	if err := api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
}

// TestEtcdNoNodeIsFree is told after a while, and corrected; members that serve are not
// touched by it.
func TestEtcdNoNodeIsFree(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Pod.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900Gi")}
	})
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "Unschedulable")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, "Insufficient memory") || obj.Status.ReadyReplicas != 2 {
		t.Errorf("it is told %q, and %d members serve", said, obj.Status.ReadyReplicas)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Resources = corev1.ResourceRequirements{} })
	same(t, before, c.settled(t))
	kept(t, w)
}

// TestEtcdAFlagThatEtcdRefuses stops at the first member, and is corrected.
func TestEtcdAFlagThatEtcdRefuses(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	if said := c.refused(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = []string{"--data-dir=/tmp"} }); !contains(said, "must not set what the operator decides") {
		t.Errorf("what the operator decides is refused with %q", said)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = []string{"--no-such-flag=1"} })
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "ChangeFailed")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, "It has not run since it was changed") || obj.Status.ReadyReplicas != 2 {
		t.Errorf("it is told %q, and %d members serve", said, obj.Status.ReadyReplicas)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = nil })
	same(t, before, c.settled(t))
	kept(t, w)
}
