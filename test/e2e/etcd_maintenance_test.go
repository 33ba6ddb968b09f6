package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// operatorNode is the node of the operator that leads.
func operatorNode(t *testing.T) string {
	t.Helper()
	holder := must(t, "-n", "governor-system", "get", "lease", "governor.governor.dev", "-o", "jsonpath={.spec.holderIdentity}")
	name, _, _ := strings.Cut(holder, "_")
	pod := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "governor-system", Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod.Spec.NodeName
}

// leads moves the leadership to the member on the node.
func (c *cluster) leads(t *testing.T, node string) (leader string) {
	t.Helper()
	c.Await(t, "the member on "+node+" leads", func() error {
		var from, to etcd.Member
		for _, m := range c.Observe(t).Members {
			if m.Leads {
				from = m
			}
			if m.Pod.Node == node {
				to = m
			}
		}
		if leader = to.Name; to.Leads {
			return nil
		}
		id := func(m etcd.Member) string { return strconv.FormatUint(m.ID, 16) }
		err := c.Act(t, lifecycle.Step{Name: etcd.MoveLeader, Target: to.Name, Args: map[string]string{etcd.ArgID: id(to), etcd.ArgFrom: id(from)}})
		return fmt.Errorf("%w: %w", errNotYet, err)
	})
	return leader
}

// claims are the UIDs of the cluster's claims, by their names.
func (c *cluster) claims(t *testing.T) map[string]types.UID {
	t.Helper()
	volumes, err := c.volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]types.UID{}
	for _, v := range volumes {
		all[v.Name] = v.UID
	}
	return all
}

// memberStatus waits until the status of the member is as wanted.
func (c *cluster) memberStatus(t *testing.T, what, member string, is func(etcdv1.MemberStatus) bool) {
	t.Helper()
	eventually(t, what, func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return is(etcd.Remembered(obj, member)) })
	})
}

// TestEtcdWaitsForANodeInMaintenance: the leader's node is cordoned and powered off, and with it the
// operator that leads. The loss is reported soon. Another operator leads when the maintenance ends, and
// the member returns with its volume, although it was silent for longer than replaceAfter.
func TestEtcdWaitsForANodeInMaintenance(t *testing.T) {
	baseline(t)
	const replaceAfter = 30 * time.Second
	c := lonelyCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Size, spec.ReplaceAfter = 3, &metav1.Duration{Duration: replaceAfter}
	})
	c.settled(t)
	node := operatorNode(t)
	gone := c.leads(t, node)
	before, volumes, w := c.settled(t), c.claims(t), c.write(t)
	cordon(t, node, true)
	t.Cleanup(func() { cordon(t, node, false) })
	hurt(t, "node", "stop", node)
	t.Cleanup(func() { hurt(t, "node", "start", node) })
	c.reportsLoss(t, takeover+lossReported, gone)
	c.memberStatus(t, "the maintenance outlasts replaceAfter", gone, func(m etcdv1.MemberStatus) bool {
		return m.Maintenance != nil && time.Since(m.Since.Time) > replaceAfter+5*time.Second
	})
	must(t, "-n", "governor-system", "delete", "pod", "-l", "app.kubernetes.io/name=governor", "--grace-period=0", "--force")
	cordon(t, node, false)
	c.memberStatus(t, "another operator records the end of the maintenance", gone, func(m etcdv1.MemberStatus) bool {
		return m.Maintenance != nil && m.Maintenance.Ended != nil
	})
	hurt(t, "node", "start", node)
	same(t, before, c.settled(t))
	if now := c.claims(t); !maps.Equal(now, volumes) {
		t.Errorf("the volumes were %v, and are %v", volumes, now)
	}
	kept(t, w)
}
