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

// refused applies the edit and returns the API server's error.
func (c *cluster) refused(t *testing.T, edit func(*etcdv1.EtcdClusterSpec)) string {
	t.Helper()
	err := c.apply(t.Context(), edit)
	if err == nil {
		t.Fatal("it was not refused")
	}
	return err.Error()
}

// TestEtcdInvalidVersions: the API server rejects a typo at once. Governor reports an unknown
// release, or an image that cannot be pulled, and does not change the members.
func TestEtcdInvalidVersions(t *testing.T) {
	c := formed(t, 3)
	before, w, pods := c.get(t), c.write(t), c.podUIDs(t)
	if said := c.refused(t, version("3,6")); !contains(said, `spec.version is "3,6", allowed are releases such as`) {
		t.Errorf("a typo is refused with %q", said)
	}
	c.Apply(t, version("3.99"))
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "UnknownVersion")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, `version "3.99" is not known to this operator, which runs etcd 3.2 to 3.7`) {
		t.Errorf("the message is %q", said)
	}
	c.Apply(t, version("3.6.99"))
	obj = c.Settles(t, lifecycle.OutcomeBlocked, string(lifecycle.PodProblemImagePullBackOff))
	if obj.Status.ReadyReplicas != 3 {
		t.Errorf("no member is taken for an image that does not exist: %+v", obj.Status)
	}
	c.samePods(t, pods)
	c.Apply(t, version(""))
	same(t, before, c.settled(t))
	c.samePods(t, pods)
	kept(t, w)
}

// TestEtcdFormsAfterImageIsCorrected: a cluster that never formed does so after a correction,
// without a new object.
func TestEtcdFormsAfterImageIsCorrected(t *testing.T) {
	c := newCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Repository = 3, "registry.invalid/no-such/etcd" })
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, string(lifecycle.PodProblemImagePullBackOff)), lifecycle.ConditionStalled).Message
	if !contains(said, "Correct spec.version, spec.repository or spec.image") {
		t.Errorf("the message is %q", said)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Repository = "" })
	c.settled(t)
}

// TestEtcdQuota: Governor reports a member that exceeds a ResourceQuota, once in the history, and it joins when there is room.
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
	eventually(t, "the status reports it", func(ctx context.Context) error {
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
		if e.Result == history.ResultFailed {
			failed = append(failed, e)
		}
	}
	if len(failed) != 1 || failed[0].Step.Name != etcd.StartMember || !contains(failed[0].Message, "exceeded quota: one") {
		t.Errorf("the history has %+v", failed)
	}
}

// TestEtcdReportsRejectedPods: the API server's error for a rejected pod reaches the user.
func TestEtcdReportsRejectedPods(t *testing.T) {
	c := newCluster(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := api.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, "FailedCreate"), lifecycle.ConditionReady).Message
	if !contains(said, "exceeded quota: none") {
		t.Errorf("the message is %q", said)
	}
	if err := api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
}

// TestEtcdReportsUnschedulablePods: Governor reports them after a while, and a correction helps. Serving members do
// not change.
func TestEtcdReportsUnschedulablePods(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Pod.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900Gi")}
	})
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "Unschedulable")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, "Insufficient memory") || obj.Status.ReadyReplicas != 2 {
		t.Errorf("the message is %q, and %d members serve", said, obj.Status.ReadyReplicas)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Resources = corev1.ResourceRequirements{} })
	same(t, before, c.settled(t))
	kept(t, w)
}

// TestEtcdImpossibleNodeTakesNoMember: no node has what the spec selects, and a correction helps.
func TestEtcdImpossibleNodeTakesNoMember(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.NodeSelector = map[string]string{"no-such": "node"} })
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "Unschedulable")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, "No serving member restarts") || obj.Status.ReadyReplicas != 3 {
		t.Errorf("the message is %q, and %d members serve", said, obj.Status.ReadyReplicas)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.NodeSelector = nil })
	same(t, before, c.settled(t))
	kept(t, w)
}

// TestEtcdInvalidFlagTakesNoMember: a trial pod shows that etcd refuses a flag, and a correction helps.
func TestEtcdInvalidFlagTakesNoMember(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	if said := c.refused(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = []string{"--data-dir=/tmp"} }); !contains(said, "must not set what the operator decides") {
		t.Errorf("what the operator decides is refused with %q", said)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = []string{"--no-such-flag=1"} })
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "ChangeFailed")
	if said := condition(t, obj, lifecycle.ConditionStalled).Message; !contains(said, "no-such-flag") || obj.Status.ReadyReplicas != 3 {
		t.Errorf("the message is %q, and %d members serve", said, obj.Status.ReadyReplicas)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = nil })
	same(t, before, c.settled(t))
	kept(t, w)
}
