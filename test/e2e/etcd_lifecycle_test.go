package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// election is how long writes may fail after the loss of a leader. etcd elects another in one or
// two seconds; the rest allows for a machine with many clusters. A lost quorum lasts longer.
const election = 20 * time.Second

func version(v string) func(*etcdv1.EtcdClusterSpec) {
	return func(spec *etcdv1.EtcdClusterSpec) { spec.Version = v }
}

// running checks that every member runs the version, and returns the object.
func (c *cluster) running(t *testing.T, version string) *etcdv1.EtcdCluster {
	t.Helper()
	obj := c.settled(t)
	for _, m := range c.Observe(t).Members {
		if m.Version != version {
			t.Errorf("%s runs %q, want %s", m.Name, m.Version, version)
		}
	}
	if v := obj.Status.Version; v.Current != version || v.Target != version {
		t.Errorf("the status has the versions %+v, want %s", v, version)
	}
	return obj
}

func condition(t *testing.T, obj *etcdv1.EtcdCluster, kind string) metav1.Condition {
	t.Helper()
	c := apimeta.FindStatusCondition(obj.Status.Conditions, kind)
	if c == nil {
		t.Fatalf("there is no condition %s", kind)
	}
	return *c
}

// TestEtcdFiveMembersOfTheDefaultVersion: the status records the chosen version.
func TestEtcdFiveMembersOfTheDefaultVersion(t *testing.T) {
	c := formed(t, 5)
	obj := c.running(t, etcd.Newest)
	if obj.Status.Version.Chosen != etcd.Newest || obj.Status.Ready != "5/5" || obj.Status.Phase != etcdv1.PhaseRunning {
		t.Errorf("the status is %+v", obj.Status)
	}
	if f := condition(t, obj, "FaultTolerant"); f.Status != metav1.ConditionTrue || f.Message != "2 members may fail without an interruption." {
		t.Errorf("five members tolerate two failures, the condition is %+v", f)
	}
}

// TestEtcdEvenSizeReportsNoAddedTolerance: two members tolerate no more failures than one.
func TestEtcdEvenSizeReportsNoAddedTolerance(t *testing.T) {
	c := formed(t, 2)
	if f := condition(t, c.get(t), "FaultTolerant"); f.Reason != "EvenSize" || f.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %+v", f)
	}
}

// TestEtcdEveryMinorReleaseRunsAndGrows: before 3.4 a member joins as a voter, and a release
// without a patch stands for its newest one.
func TestEtcdEveryMinorReleaseRunsAndGrows(t *testing.T) {
	for minor, want := range map[string]string{"3.3": "3.3.25", "3.4": "3.4.23", "3.5": "3.5.35", "3.7": "3.7.3"} {
		t.Run(minor, func(t *testing.T) {
			c := formed(t, 2, version(minor))
			w := c.write(t)
			c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 3 })
			c.running(t, want)
			kept(t, w)
		})
	}
}

// TestEtcdSizeChangesWhileScaling: 3→5→3→7→3 without waiting for each, while a client writes.
func TestEtcdSizeChangesWhileScaling(t *testing.T) {
	c := formed(t, 3)
	w := c.write(t)
	for _, wish := range []struct{ size, until int32 }{{5, 4}, {3, 4}, {7, 5}, {3, 5}} {
		c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = wish.size })
		// Members may be removed faster than the test polls.
		reached := func(obj *etcdv1.EtcdCluster) bool {
			has, grows := obj.Status.Replicas, wish.size > wish.until
			return obj.Status.ObservedGeneration == obj.Generation && (grows && has >= wish.until || !grows && has <= wish.until)
		}
		eventually(t, fmt.Sprintf("on the way to %d there are %d members", wish.size, wish.until), func(ctx context.Context) error {
			return c.has(ctx, reached)
		})
	}
	c.settled(t)
	c.noOrphans(t)
	kept(t, w)
	if gap := w.Stats().LongestGap; gap > election {
		t.Errorf("no client could write for %s", gap)
	}
}

func (c *cluster) has(ctx context.Context, is func(*etcdv1.EtcdCluster) bool) error {
	obj, err := c.read(ctx)
	if err == nil && !is(obj) {
		return fmt.Errorf("%w: %+v", errNotYet, obj.Status)
	}
	return err
}

// noOrphans checks that Kubernetes has exactly the objects of the members.
func (c *cluster) noOrphans(t *testing.T) {
	t.Helper()
	var members []string
	for _, m := range c.get(t).Status.Members {
		members = append(members, m.Name)
	}
	slices.Sort(members)
	eventually(t, "nothing is left of others", func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}} {
			found, err := c.owners(ctx, list)
			if err != nil {
				return err
			}
			if !slices.Equal(found, members) {
				return fmt.Errorf("%w: %T of %v, the members are %v", errNotYet, list, found, members)
			}
		}
		return nil
	})
}

// owners are the members that the listed objects belong to.
func (c *cluster) owners(ctx context.Context, list client.ObjectList) ([]string, error) {
	err := api.List(ctx, list, client.InNamespace(c.key.Namespace), client.MatchingLabels{lifecycle.LabelInstance: c.key.Name})
	var found []string
	_ = apimeta.EachListItem(list, func(obj runtime.Object) error {
		found = append(found, obj.(client.Object).GetLabels()[etcd.LabelMember])
		return nil
	})
	slices.Sort(found)
	return found, err
}

// TestEtcdUpgradesUnderAWriter: from 3.5 to 3.6, member by member, without losing the quorum;
// then a change of the options in the same way.
func TestEtcdUpgradesUnderAWriter(t *testing.T) {
	c := formed(t, 3, version("3.5.35"))
	w := c.write(t)
	before := c.get(t).Status.ClusterID
	c.Apply(t, version("3.6"))
	if id := c.running(t, "3.6.16").Status.ClusterID; id != before {
		t.Errorf("the cluster was %s, and is %s", before, id)
	}
	if gap := w.Stats().LongestGap; gap > election {
		t.Errorf("during the upgrade no client could write for %s", gap)
	}
	began := time.Now()
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Options.SnapshotCount = 5000 })
	c.settled(t)
	if gap := w.LongestGap(began); gap > election {
		t.Errorf("during the change of an option no client could write for %s", gap)
	}
	for _, p := range c.pods(t) {
		if !slices.Contains(p.Spec.Containers[0].Args, "--snapshot-count=5000") {
			t.Errorf("%s runs with %v", p.Name, p.Spec.Containers[0].Args)
		}
	}
	kept(t, w)
}

// TestEtcdUpgradesThroughEveryMinorRelease: 3.4 to 3.6 through 3.5, one at a time.
func TestEtcdUpgradesThroughEveryMinorRelease(t *testing.T) {
	c := formed(t, 1, version("3.4"))
	c.Apply(t, version("3.6"))
	c.running(t, "3.6.16")
	c.Apply(t, version("3.5"))
	obj := c.Settles(t, lifecycle.OutcomeBlocked, "VersionRefused")
	if obj.Status.Version.Current != "3.6.16" || obj.Status.ReadyReplicas != 1 {
		t.Errorf("a refused downgrade must not change anything: %+v", obj.Status)
	}
	c.Apply(t, version("3.6"))
	c.settled(t)
}

func (c *cluster) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	err := api.List(t.Context(), &list, client.InNamespace(c.key.Namespace), client.MatchingLabels{lifecycle.LabelInstance: c.key.Name})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
