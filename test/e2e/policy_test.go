package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// ruled creates a policy for the test's cluster.
func (c *cluster) ruled(t *testing.T, edit func(*v1alpha1.OperationPolicySpec)) {
	t.Helper()
	p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: c.key.Namespace}}
	p.Spec.Selector = v1alpha1.ObjectSelector{Kinds: []string{"EtcdCluster"}, Namespaces: []string{c.key.Namespace}}
	edit(&p.Spec)
	if err := api.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), p) })
}

// held waits until a policy holds a step, and the status message contains the words.
func (c *cluster) held(t *testing.T, words string) {
	t.Helper()
	eventually(t, "it is held: "+words, func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionReady)
		if ready == nil || ready.Reason != lifecycle.ReasonHeldByPolicy || !strings.Contains(ready.Message, words) {
			return fmt.Errorf("%w: it says %+v", errNotYet, ready)
		}
		return nil
	})
}

// whoami is the test's user name in the API server.
func whoami(t *testing.T) string {
	t.Helper()
	r := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.Status.UserInfo.Username
}

func (c *cluster) approval(t *testing.T, plan preview.Report) *v1alpha1.Approval {
	t.Helper()
	obj := c.get(t)
	a := &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: "upgrade"}, Spec: v1alpha1.ApprovalSpec{
		TargetRef: v1alpha1.ApprovedObject{
			Group: etcdv1.GroupVersion.Group, Kind: "EtcdCluster", Name: c.key.Name, UID: string(obj.UID), Generation: obj.Generation,
		},
		Approver: whoami(t), Reason: "tried in staging", ExpirationTime: metav1.NewTime(time.Now().Add(time.Hour)),
	}}
	for _, s := range plan.Actions() {
		a.Spec.Steps = append(a.Spec.Steps, v1alpha1.ApprovedStep{Name: s.Name, Target: s.Target, Class: v1alpha1.ApprovedClass(s.Class), Args: s.Args})
	}
	return a
}

// TestUpgradeWaitsForApproval: nothing restarts before a user approves the plan under their own
// name. The upgrade then runs, and the history names the approver.
func TestUpgradeWaitsForApproval(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.Version = "3.6.16" })
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) {
		s.Approval = &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Disruptive", "Destructive", "Irreversible"}}
	})
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Version = "3.7" })
	c.held(t, "there is none")
	plan := c.preview(t, func(*etcdv1.EtcdClusterSpec) {})
	a := c.approval(t, plan)
	forged := a.DeepCopy()
	forged.Spec.Approver = "another-user"
	if err := api.Create(t.Context(), forged); !apierrors.IsForbidden(err) {
		t.Errorf("approved in the name of another: %v", err)
	}
	if err := api.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
	for _, e := range c.history(t).Entries {
		if e.Step.Name == "Restart" && e.Result == history.ResultSucceeded && (e.Approval == nil || e.Approval.By != a.Spec.Approver || e.Approval.Reason != "tried in staging") {
			t.Errorf("%s was taken by the word of %+v", e.Step, e.Approval)
		}
	}
}

// A repair does not carry out a change that a policy holds: the StatefulSet of a member that was deleted returns with the
// spec that worked last, and the change comes with the end of the freeze, as do another member and a NetworkPolicy.
func TestEtcdRepairLeavesOutHeldChange(t *testing.T) {
	c := formed(t, 1)
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "quarter's end"} })
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Size, spec.Pod.Env = 2, []corev1.EnvVar{{Name: "ETCD_LOG_LEVEL", Value: "warn"}}
		spec.NetworkPolicy.Enabled = true
	})
	c.held(t, "quarter's end")
	old := c.pod(t, "etcd-0").UID
	if _, err := kubectl("-n", c.key.Namespace, "delete", "statefulset", "etcd-0"); err != nil {
		t.Fatal(err)
	}
	changed := func() (bool, error) {
		pods := &corev1.PodList{}
		if err := api.List(t.Context(), pods, client.InNamespace(c.key.Namespace)); err != nil {
			return false, err
		}
		for _, p := range pods.Items {
			if p.UID == old || p.Name != "etcd-0-0" || p.DeletionTimestamp != nil {
				continue
			}
			return slices.ContainsFunc(p.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "ETCD_LOG_LEVEL" }), nil
		}
		return false, errNotYet
	}
	eventually(t, "the member is back without the change", func(context.Context) error {
		has, err := changed()
		if has {
			t.Fatal("the repair has carried out the change that is held")
		}
		return err
	})
	c.held(t, "quarter's end")
	if n := c.get(t).Status.Replicas; n != 1 {
		t.Errorf("the freeze has let a member join: there are %d", n)
	}
	if err := c.networkPolicyExists(t); !apierrors.IsNotFound(err) {
		t.Errorf("during the freeze, clients are cut off: %v", err)
	}
	if _, err := kubectl("delete", "operationpolicy", c.key.Namespace); err != nil {
		t.Fatal(err)
	}
	c.settled(t)
	if has, err := changed(); !has || err != nil {
		t.Errorf("after the freeze the change is there: %v, %v", has, err)
	}
	if err := c.networkPolicyExists(t); err != nil {
		t.Errorf("after the freeze there is the NetworkPolicy: %v", err)
	}
}

func (c *cluster) networkPolicyExists(t *testing.T) error {
	t.Helper()
	return api.Get(t.Context(), c.key, &networkingv1.NetworkPolicy{})
}

// A freeze holds an upgrade, and the node of a member is drained: its pod finds no node for a moment, because its volume
// stays there. The member returns with its version.
func TestEtcdADrainCarriesOutNoHeldUpgrade(t *testing.T) {
	c := lonelyCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Version = 1, "3.6" })
	before := c.settled(t)
	c.ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "quarter's end"} })
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Version = "3.7" })
	c.held(t, "quarter's end")
	node := before.Status.Members[0].Node
	cordon(t, node, true)
	t.Cleanup(func() { cordon(t, node, false) })
	c.LosePods(t, "etcd-0")
	c.Await(t, "the pod finds no node", func() error {
		return c.keepsVersion(t, before.Status.Version.Current, func(m etcd.Member) bool { return m.Pod.Trouble == lifecycle.PodProblemUnschedulable })
	})
	c.held(t, "quarter's end")
	cordon(t, node, false)
	c.Await(t, "the member serves again", func() error {
		return c.keepsVersion(t, before.Status.Version.Current, func(m etcd.Member) bool { return m.Health == etcd.Healthy && m.Pod.Ready })
	})
	if _, err := kubectl("delete", "operationpolicy", c.key.Namespace); err != nil {
		t.Fatal(err)
	}
	if after := c.settled(t); !strings.HasPrefix(after.Status.Version.Current, "3.7.") {
		t.Errorf("after the freeze the member runs %s", after.Status.Version.Current)
	}
}

// keepsVersion fails the test if the only member has another version, and returns an error until the member is as wanted.
func (c *cluster) keepsVersion(t *testing.T, version string, is func(etcd.Member) bool) error {
	t.Helper()
	for _, m := range c.Observe(t).Members {
		if m.Set.Version != version || m.Pod.Exists && m.Pod.Version != version {
			t.Fatalf("the repair has carried out the upgrade that is held: %+v", m)
		}
		if is(m) {
			return nil
		}
	}
	return errNotYet
}
