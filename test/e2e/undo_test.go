package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// rolledBack waits until the operator has restored the last working spec, and the cluster is
// settled.
func (c *cluster) rolledBack(t *testing.T, reason string) *etcdv1.EtcdCluster {
	t.Helper()
	eventually(t, "the spec that worked is back", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		if is := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionRolledBack); is == nil || is.Reason != reason {
			return fmt.Errorf("%w: %+v, ready is %+v", errNotYet, is, apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionReady))
		}
		return nil
	})
	return c.settled(t)
}

// TestEtcdRollsBackFailedChange: an image that never starts affects one member. The others serve
// all the time, and the policy restores the first one. The volumes, which grew with the same
// change, keep their size. Then a user rolls back manually.
func TestEtcdRollsBackFailedChange(t *testing.T) {
	size, more := resource.MustParse("1Gi"), resource.MustParse("2Gi")
	c := formed(t, 3, version("3.6.16"), func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Size = &size })
	before, w := c.get(t), c.write(t)
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.OnFailure = v1alpha1.FailurePolicyRollback })
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Version, spec.Storage.Size = "3.6.99", &more })
	after := c.rolledBack(t, string(lifecycle.PodProblemImagePullBackOff))
	same(t, before, after)
	if after.Spec.Version != "3.6.16" || after.Spec.Storage.Size.Cmp(more) != 0 {
		t.Errorf("the version is %s, the size %s", after.Spec.Version, after.Spec.Storage.Size)
	}
	if said := condition(t, after, lifecycle.ConditionRolledBack).Message; !contains(said, "spec.storage.size stays 2Gi, as volumes only grow") {
		t.Errorf("the condition says %q", said)
	}
	touched := map[string]bool{}
	for _, e := range c.history(t).Entries {
		if e.Step.Name == "Restart" {
			touched[e.Step.Target] = true
		}
	}
	if len(touched) != 0 {
		t.Errorf("members were touched for an image that does not exist: %v", touched)
	}
	for _, args := range [][]string{{"history"}, {"why"}, {"revisions"}} {
		said, _ := plugin(t, c.key.Namespace, append([]string{args[0], "etcdcluster/etcd"}, args[1:]...)...)
		t.Logf("kubectl governor %s\n%s", strings.Join(args, " "), said)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Labels = map[string]string{"tried": "yes"} })
	c.settled(t)
	said, code := plugin(t, c.key.Namespace, "rollback", "etcdcluster/etcd")
	t.Logf("kubectl governor rollback\n%s", said)
	if code != 0 || !contains(said, "the spec of revision 3 again") {
		t.Errorf("exit %d", code)
	}
	if obj := c.settled(t); len(obj.Spec.Pod.Labels) != 0 {
		t.Errorf("the failed change is still present: %v", obj.Spec.Pod.Labels)
	}
	kept(t, w)
}

// TestEtcdOfOneRollsBackFailedChange: no other member shows that the change is the cause, but
// the cluster never ran with it.
func TestEtcdOfOneRollsBackFailedChange(t *testing.T) {
	for name, fail := range map[string]func(*etcdv1.EtcdClusterSpec){
		"Image": version("3.6.99"),
		"Args":  func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.Args = []string{"--no-such-flag=1"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := formed(t, 1, version("3.6.16"))
			before, w := c.get(t), c.write(t)
			eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
			c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.OnFailure = v1alpha1.FailurePolicyRollback })
			c.Apply(t, fail)
			reason := map[string]string{"Image": string(lifecycle.PodProblemImagePullBackOff), "Args": "ChangeFailed"}[name]
			after := c.rolledBack(t, reason)
			same(t, before, after)
			if after.Spec.Version != "3.6.16" || len(after.Spec.Pod.Args) > 0 {
				t.Errorf("the spec is %+v", after.Spec)
			}
			kept(t, w)
		})
	}
}
