package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// pod is the member's current pod.
func (c *cluster) pod(t *testing.T, member string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: member + "-0"}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// remade waits for a pod of the member with another UID.
func (c *cluster) remade(t *testing.T, member string, not types.UID) {
	t.Helper()
	eventually(t, member+" has another pod", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		err := api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: member + "-0"}, pod)
		if err == nil && pod.UID == not {
			return errNotYet
		}
		return err
	})
}

// same checks that cluster and members are unchanged; replaced checks that exactly one member was
// replaced.
func same(t *testing.T, before, after *etcdv1.EtcdCluster) {
	t.Helper()
	if after.Status.ClusterID != before.Status.ClusterID {
		t.Errorf("the cluster was %s, and is %s", before.Status.ClusterID, after.Status.ClusterID)
	}
	for _, m := range before.Status.Members {
		i := slices.IndexFunc(after.Status.Members, func(o etcdv1.MemberStatus) bool { return o.Name == m.Name })
		if i < 0 || after.Status.Members[i].ID != m.ID {
			t.Errorf("%s (%s) is not the same any more: %+v", m.Name, m.ID, after.Status.Members)
		}
	}
}

func replaced(t *testing.T, before, after *etcdv1.EtcdCluster, gone string) {
	t.Helper()
	of := func(m etcdv1.MemberStatus) bool { return m.Name == gone }
	if slices.ContainsFunc(after.Status.Members, of) {
		t.Errorf("%s must not return: %+v", gone, after.Status.Members)
	}
	before = before.DeepCopy()
	before.Status.Members = slices.DeleteFunc(before.Status.Members, of)
	same(t, before, after)
}

// TestEtcdRepairsPods: no failure of containers and pods costs a member or its data. One cluster
// suffers all of them, its leader each time.
func TestEtcdRepairsPods(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	harms := []struct {
		name string
		do   func(t *testing.T, member string)
	}{
		{"the pod is lost", func(t *testing.T, m string) { c.LosePods(t, m) }},
		{"the container crashes", func(t *testing.T, m string) { c.signal(t, m, syscall.SIGKILL) }},
		{"the pod is evicted", c.evict},
		{"the pod has failed", func(t *testing.T, m string) { c.ends(t, m, corev1.PodFailed) }},
		{"the pod has succeeded", func(t *testing.T, m string) { c.ends(t, m, corev1.PodSucceeded) }},
	}
	for _, harm := range harms {
		t.Run(harm.name, func(t *testing.T) {
			leader := c.settled(t).Status.Leader
			harm.do(t, leader)
			same(t, before, c.settled(t))
		})
	}
	c.noOrphans(t)
	kept(t, w)
	if gap := w.Stats().LongestGap; gap > election {
		t.Errorf("no client could write for %s", gap)
	}
}

// evict evicts the pod as `kubectl drain` does.
func (c *cluster) evict(t *testing.T, member string) {
	t.Helper()
	pod := c.pod(t, member)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	eventually(t, "the disruption budget lets "+pod.Name+" go", func(ctx context.Context) error {
		return api.SubResource("eviction").Create(ctx, pod, eviction)
	})
	c.remade(t, member, pod.UID)
}

// ends terminates the pod, as a kubelet does that lacks memory or disk space.
func (c *cluster) ends(t *testing.T, member string, phase corev1.PodPhase) {
	t.Helper()
	pod := c.pod(t, member)
	ended := pod.DeepCopy()
	ended.Status.Phase, ended.Status.Reason = phase, "Evicted"
	if err := api.Status().Patch(t.Context(), ended, client.MergeFrom(pod)); err != nil {
		t.Fatal(err)
	}
	c.remade(t, member, pod.UID)
}

// TestEtcdReplacesMemberWithoutData: a member whose data is wiped or corrupt never returns under
// its old identity. Another replaces it, and no acknowledged write is lost.
func TestEtcdReplacesMemberWithoutData(t *testing.T) {
	harms := []struct {
		name string
		do   func(dir string) error
	}{
		{"wiped", os.RemoveAll},
		{"log corrupted", func(dir string) error { return scribble(filepath.Join(dir, "wal")) }},
		{"database lost", func(dir string) error { return os.Remove(filepath.Join(dir, "snap", "db")) }},
	}
	// Before its first snapshot etcd rebuilds a lost database from its log.
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.Options.SnapshotCount = 20 })
	w := c.write(t)
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 100) })
	for _, harm := range harms {
		t.Run(harm.name, func(t *testing.T) {
			before := c.settled(t)
			victim, begun := before.Status.Leader, len(c.history(t).Entries)
			process := c.process(t, victim)
			if err := harm.do(fmt.Sprintf("/proc/%d/root/var/lib/etcd/data/member", process)); err != nil {
				t.Fatal(err)
			}
			_ = syscall.Kill(process, syscall.SIGKILL) // it may have terminated by itself
			eventually(t, victim+" is given up", func(ctx context.Context) error {
				return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
					return !slices.ContainsFunc(obj.Status.Members, func(m etcdv1.MemberStatus) bool { return m.Name == victim })
				})
			})
			replaced(t, before, c.settled(t), victim)
			for _, e := range c.history(t).Entries[begun:] {
				if e.Step.Cause != lifecycle.CauseFault {
					t.Errorf("a fault began it, and the cause of %s is %s", e.Step, e.Step.Cause)
				}
			}
		})
	}
	c.noOrphans(t)
	kept(t, w)
}

// scribble changes a key in the log, as a failing disk may. At a changed length etcd would
// truncate the log, and copy the rest.
func scribble(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		return err
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if at := bytes.Index(raw, []byte("witness/")); at >= 0 {
			raw[at] = 'W'
			return os.WriteFile(name, raw, 0)
		}
	}
	return fmt.Errorf("no key of a witness in %v", files)
}

// TestEtcdRecoversFromLossOfAllPods: all pods are lost at once, and the cluster recovers
// unchanged with its data.
func TestEtcdRecoversFromLossOfAllPods(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	c.LosePods(t, "etcd-0", "etcd-1", "etcd-2")
	same(t, before, c.settled(t))
	kept(t, w)
}

// TestEtcdWaitsForFrozenMember: Governor waits for a frozen member and does not replace it, and
// the others serve.
func TestEtcdWaitsForFrozenMember(t *testing.T) {
	c := formed(t, 3)
	before, w := c.get(t), c.write(t)
	slow := before.Status.Leader
	c.signal(t, slow, syscall.SIGSTOP)
	eventually(t, "the operator knows", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return obj.Status.Phase == etcdv1.PhaseDegraded && obj.Status.Leader != slow
		})
	})
	c.signal(t, slow, syscall.SIGCONT)
	same(t, before, c.settled(t))
	kept(t, w)
}
