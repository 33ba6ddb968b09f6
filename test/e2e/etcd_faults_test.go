package e2e_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// busy is the margin of a test for a machine that several clusters share.
	busy = 5 * time.Second
	// alarmReported and lossReported are how soon an alarm, and the loss of a leader, must be reported.
	alarmReported = 10*time.Second + busy
	lossReported  = 15*time.Second + busy
	// takeover is how long no operator leads after the machine of the leader failed: its lease, and
	// the interval at which the standby tries to get it.
	takeover = 18 * time.Second
)

// alone is formed, for a test that disturbs shared components.
func alone(t *testing.T, size int32) *cluster {
	t.Helper()
	c := lonelyCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = size })
	c.settled(t)
	return c
}

// watchLearners records the largest number of learners in the list, until the test ends.
func (c *cluster) watchLearners(t *testing.T) *atomic.Int32 {
	t.Helper()
	var most atomic.Int32
	meanwhile(t, 200*time.Millisecond, func(ctx context.Context) {
		if n := c.learners(ctx); n > most.Load() {
			most.Store(n)
		}
	})
	return &most
}

// meanwhile repeats the action in the background until the test ends.
func meanwhile(t *testing.T, every time.Duration, do func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				do(ctx)
			}
		}
	}()
}

func (c *cluster) learners(ctx context.Context) int32 {
	obj, err := c.read(ctx)
	if err != nil {
		return 0
	}
	seen, err := c.driver.Observe(ctx, obj)
	if err != nil {
		return 0
	}
	var n int32
	for _, m := range seen.Members {
		if m.Role == etcd.Learner {
			n++
		}
	}
	return n
}

// TestEtcdOperatorFailsWhileScaling: the operator is killed at every change of the member list
// while the size changes from 1 to 4 and to 2. Each new operator continues.
func TestEtcdOperatorFailsWhileScaling(t *testing.T) {
	c := alone(t, 1)
	w, most := c.write(t), c.watchLearners(t)
	id := c.get(t).Status.ClusterID
	for _, size := range []int32{4, 2} {
		c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = size })
		for members := c.get(t).Status.Replicas; members != size; members = c.get(t).Status.Replicas {
			eventually(t, "the operator has done something", func(ctx context.Context) error {
				return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return obj.Status.Replicas != members })
			})
			must(t, "-n", "governor-system", "delete", "pod", "-l", "app.kubernetes.io/name=governor", "--grace-period=0", "--force")
		}
		if now := c.settled(t).Status.ClusterID; now != id {
			t.Errorf("the cluster was %s, and is %s", id, now)
		}
	}
	if n := most.Load(); n != 1 {
		t.Errorf("there were %d learners at once, want 1", n)
	}
	c.noOrphans(t)
	kept(t, w)
}

// reportsLoss waits until another member leads, and the loss is reported.
func (c *cluster) reportsLoss(t *testing.T, limit time.Duration, leader string) {
	t.Helper()
	within(t, limit, "another member leads, and the loss of "+leader+" is reported", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return obj.Status.Leader != leader && obj.Status.Leader != "" && obj.Status.Phase == etcdv1.PhaseDegraded &&
				apimeta.IsStatusConditionFalse(obj.Status.Conditions, lifecycle.ConditionReady)
		})
	})
}

// TestEtcdServesWhileANodeIsDown: Governor waits for the member, because a restarted node
// returns it with its data.
func TestEtcdServesWhileANodeIsDown(t *testing.T) {
	baseline(t)
	c := alone(t, 3)
	before, w := c.get(t), c.write(t)
	var gone, node string
	for _, m := range before.Status.Members {
		if m.Node != operatorNode(t) {
			gone, node = c.leads(t, m.Node), m.Node
		}
	}
	hurt(t, "node", "stop", node)
	t.Cleanup(func() { hurt(t, "node", "start", node) })
	c.reportsLoss(t, lossReported, gone)
	down := time.Now()
	eventually(t, "writes go on", func(context.Context) error {
		if t := w.Stats(); t.SinceLastAck > time.Second || time.Since(down) < 5*time.Second {
			return fmt.Errorf("%w: %s", errNotYet, t)
		}
		return nil
	})
	eventually(t, "the node is named", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			said := condition(t, obj, lifecycle.ConditionReady).Message
			return contains(said, gone+" does not answer: the node "+node+" is NotReady since ")
		})
	})
	hurt(t, "node", "start", node)
	same(t, before, c.settled(t))
	kept(t, w)
}
