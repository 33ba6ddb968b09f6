package e2e_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// baseline waits until the cluster is as the installation left it, and installs the operator again at the end of the test. A
// test that disturbs what all tests share begins with it, so that the failure of one does not become that of the next.
func baseline(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := install(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the cluster is as it was installed", isAsInstalled)
}

func isAsInstalled(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := api.List(ctx, &nodes); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable || !isNodeReady(n) {
			return fmt.Errorf("%w: node %s is cordoned or not ready", errNotYet, n.Name)
		}
	}
	var operator appsv1.Deployment
	if err := api.Get(ctx, client.ObjectKey{Namespace: "governor-system", Name: "governor"}, &operator); err != nil {
		return err
	}
	if have, want := operator.Status.AvailableReplicas, *operator.Spec.Replicas; have != want || want < 2 {
		return fmt.Errorf("%w: %d of %d replicas of the operator are available", errNotYet, have, want)
	}
	var policies v1alpha1.OperationPolicyList
	if err := api.List(ctx, &policies); err != nil {
		return err
	}
	if len(policies.Items) > 0 {
		return fmt.Errorf("%w: the policy %s is left", errNotYet, policies.Items[0].Name)
	}
	return nil
}

func isNodeReady(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
