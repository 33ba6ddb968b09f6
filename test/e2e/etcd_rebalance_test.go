package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// cordon keeps new pods from the node until the test is over.
func cordon(t *testing.T, node string, is bool) {
	t.Helper()
	n := &corev1.Node{}
	n.Name = node
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is))
	if err := api.Patch(context.Background(), n, patch); err != nil {
		t.Fatal(err)
	}
}

// zones are those of the nodes that the members run on.
func (c *cluster) zones(t *testing.T) map[string]int {
	t.Helper()
	in := map[string]int{}
	for _, m := range c.get(t).Status.Members {
		if m.Node == "" {
			continue // it is not scheduled yet
		}
		n := &corev1.Node{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: m.Node}, n); err != nil {
			t.Fatal(err)
		}
		in[n.Labels[corev1.LabelTopologyZone]]++
	}
	return in
}

// TestEtcdMovesMemberToZoneWithRoom: a cluster that formed while a zone was closed has two
// members in another. When the zone opens, one of them moves, and clients notice nothing.
func TestEtcdMovesMemberToZoneWithRoom(t *testing.T) {
	baseline(t)
	c := lonelyCluster(t)
	cordon(t, "n3", true)
	t.Cleanup(func() { cordon(t, "n3", false) })
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 3 })
	before, w := c.settled(t), c.write(t)
	if len(c.zones(t)) != 2 {
		t.Fatalf("the members are in %v", c.zones(t))
	}
	said := condition(t, before, "FaultTolerant").Message
	if !contains(said, "would break the quorum. With spec.rebalance: Automatic, Governor moves members") {
		t.Errorf("the message is %q", said)
	}
	cordon(t, "n3", false)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Rebalance = etcdv1.RebalanceAutomatic })
	c.Await(t, "each member is in a zone of its own", func() error {
		if in := c.zones(t); len(in) != 3 {
			return fmt.Errorf("%w: %v", errNotYet, in)
		}
		return nil
	})
	if after := c.settled(t); len(after.Status.Members) != 3 || after.Status.ClusterID != before.Status.ClusterID {
		t.Errorf("the members are %+v", after.Status.Members)
	}
	kept(t, w)
}
