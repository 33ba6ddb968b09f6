package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// goes deletes the cluster and waits until it no longer exists.
func (c *cluster) goes(t *testing.T) {
	t.Helper()
	obj := c.get(t)
	if err := api.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	eventually(t, c.key.String()+" is gone", func(ctx context.Context) error {
		_, err := c.read(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: %w", errNotYet, err)
	})
}

func (c *cluster) volumes(ctx context.Context) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	err := api.List(ctx, &list, client.InNamespace(c.key.Namespace), client.MatchingLabels{lifecycle.LabelInstance: c.key.Name})
	return list.Items, err
}

// keys counts the keys that consistency clients have written.
func (c *cluster) keys(t *testing.T) int {
	t.Helper()
	n := 0
	eventually(t, "the keys are read", func(ctx context.Context) (err error) {
		n, err = consistencyclient.Count(ctx, c.clients())
		return err
	})
	return n
}

// TestEtcdVolumesAreDeletedWithTheCluster with retention Delete. A later cluster of the same name is unrelated.
func TestEtcdVolumesAreDeletedWithTheCluster(t *testing.T) {
	c := formed(t, 3, retention(etcdv1.RetentionDelete))
	w := c.write(t)
	id := c.get(t).Status.ClusterID
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
	w.Stop()
	c.goes(t)
	eventually(t, "its volumes are gone", func(ctx context.Context) error {
		left, err := c.volumes(ctx)
		if err == nil && len(left) > 0 {
			return fmt.Errorf("%w: %d are left", errNotYet, len(left))
		}
		return err
	})
	c.isAnother(t, id)
}

func atLeast(is, want int) error {
	if is < want {
		return fmt.Errorf("%w: %d of %d", errNotYet, is, want)
	}
	return nil
}

// isAnother creates a cluster of the same name, which must have no data.
func (c *cluster) isAnother(t *testing.T, id string) {
	t.Helper()
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	if now := c.settled(t).Status.ClusterID; now == id {
		t.Errorf("the cluster of the same name is %s again", now)
	}
	if n := c.keys(t); n > 0 {
		t.Errorf("a new cluster has %d keys of an earlier one", n)
	}
}

// TestEtcdVolumesAreRetained by default; a new cluster of the name does not mount them.
func TestEtcdVolumesAreRetained(t *testing.T) {
	c := formed(t, 1)
	w := c.write(t)
	id := c.get(t).Status.ClusterID
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
	w.Stop()
	c.goes(t)
	left, err := c.volumes(t.Context())
	if err != nil || len(left) != 1 || left[0].DeletionTimestamp != nil {
		t.Fatalf("of the cluster there are the volumes %v, %v, want one", left, err)
	}
	c.isAnother(t, id)
	still := &corev1.PersistentVolumeClaim{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(&left[0]), still); err != nil || still.DeletionTimestamp != nil {
		t.Errorf("the retained volume is %v, %v", still.DeletionTimestamp, err)
	}
}

// TestEtcdWithoutVolumes: Governor replaces a member that loses its pod, and thus its data. No
// acknowledged write is lost.
func TestEtcdWithoutVolumes(t *testing.T) {
	for _, medium := range []etcdv1.Medium{etcdv1.MediumMemory, etcdv1.MediumEphemeral} {
		t.Run(string(medium), func(t *testing.T) {
			size := resource.MustParse("256Mi")
			c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Medium, spec.Storage.Size = medium, &size })
			before, w := c.get(t), c.write(t)
			if left, err := c.volumes(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("there are the volumes %v, %v", left, err)
			}
			if medium == etcdv1.MediumMemory {
				c.keepsUnreadyPods(t)
				same(t, before, c.settled(t))
			}
			c.LosePods(t, "etcd-1")
			replaced(t, before, c.settled(t), "etcd-1")
			kept(t, w)
		})
	}
}

// keepsUnreadyPods: while no pod is ready, a drain evicts none of them, and with it the data.
func (c *cluster) keepsUnreadyPods(t *testing.T) {
	t.Helper()
	for _, member := range []string{"etcd-0", "etcd-2"} {
		c.signal(t, member, syscall.SIGSTOP)
		defer c.signal(t, member, syscall.SIGCONT)
	}
	c.unready(t)
	c.refusesEvictions(t)
}

// TestEtcdNoSuchStorageClass: Governor reports it, and the user creates another cluster with a
// correct one.
func TestEtcdNoSuchStorageClass(t *testing.T) {
	c := newCluster(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Storage.StorageClassName = 1, new("no-such-class") })
	said := condition(t, c.Settles(t, lifecycle.OutcomeBlocked, "VolumeMissing"), lifecycle.ConditionReady).Message
	if want := `the StorageClass "no-such-class" does not exist`; !contains(said, want) {
		t.Errorf("the message is %q, want %q", said, want)
	}
	c.goes(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	c.settled(t)
}

// TestEtcdVolumesGrow while etcd runs, if the StorageClass permits it.
func TestEtcdVolumesGrow(t *testing.T) {
	size, more := resource.MustParse("1Gi"), resource.MustParse("2Gi")
	c := formed(t, 1, func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Size = &size })
	pod := c.pod(t, "etcd-0").UID
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Size = &more })
	eventually(t, "the volume has grown, or the reason is reported", func(ctx context.Context) error {
		volumes, err := c.volumes(ctx)
		if err != nil {
			return err
		}
		if asked := volumes[0].Spec.Resources.Requests.Storage(); asked.Cmp(more) == 0 {
			return nil
		}
		return tells(c.get(t), lifecycle.OutcomeBlocked, "VolumeCannotGrow")
	})
	if now := c.pod(t, "etcd-0").UID; now != pod {
		t.Error("the pod was restarted for it")
	}
}

// TestEtcdDeletionIsQuick even when etcd is down and the object is paused, and does not delay
// the deletion of a namespace.
func TestEtcdDeletionIsQuick(t *testing.T) {
	c := formed(t, 3)
	c.LoseVolumes(t, "etcd-0", "etcd-1", "etcd-2")
	c.Settles(t, lifecycle.OutcomeBlocked, "QuorumLost")
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = true })
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.key.Namespace}}
	if err := api.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: %w", errNotYet, err)
	})
}

// TestEtcdGrowsAFullDisk: the volume of a member that crash-loops on a full disk grows although
// it does not serve, and it serves again.
func TestEtcdGrowsAFullDisk(t *testing.T) {
	size, more := resource.MustParse("256Mi"), resource.MustParse("512Mi")
	c := formed(t, 1, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Storage.Size, spec.Storage.StorageClassName = &size, sizedClass(t)
	})
	w := c.write(t)
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
	w.Stop()
	fills(t, fmt.Sprintf("/proc/%d/root/var/lib/etcd", c.process(t, "etcd-0")))
	c.needsPages(t)
	eventually(t, "it cannot start", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return obj.Status.Members[0].Problem == string(lifecycle.PodProblemCrashLoopBackOff)
		})
	})
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Size = &more })
	c.settled(t) // after a restart, or because an attempt of the kubelet succeeds just then
	kept(t, w)
}

// TestEtcdReportsFullDisk: Governor reports at once why a member terminates, while the others serve.
func TestEtcdReportsFullDisk(t *testing.T) {
	size, more := resource.MustParse("256Mi"), resource.MustParse("512Mi")
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Storage.Size, spec.Storage.StorageClassName = &size, sizedClass(t)
	})
	before, w := c.get(t), c.write(t)
	full := before.Status.Members[0].Name
	fills(t, fmt.Sprintf("/proc/%d/root/var/lib/etcd", c.process(t, full)))
	c.needsPages(t)
	within(t, 30*time.Second, "its termination message is reported", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		said := condition(t, obj, lifecycle.ConditionReady).Message
		if !contains(said, full+" does not serve: ") || !contains(said, "no space left on device (its volume is full: raise spec.storage.size)") {
			return fmt.Errorf("%w: %s", errNotYet, said)
		}
		return nil
	})
	c.growsAsPreviewed(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Storage.Size = &more })
	same(t, before, c.settled(t))
	kept(t, w)
}

// growsAsPreviewed compares the steps with the preview. Its last one restarts the member on the full disk, which is not needed if
// an attempt of the kubelet succeeds first.
func (c *cluster) growsAsPreviewed(t *testing.T, edit func(*etcdv1.EtcdClusterSpec)) {
	t.Helper()
	report, begun := c.preview(t, edit), len(c.history(t).Entries)
	c.Apply(t, edit)
	c.settled(t)
	steps := c.history(t).Entries[begun:]
	last := len(report.Actions()) - 1
	if last < 0 || report.Actions()[last].Name != etcd.Restart {
		t.Fatalf("the preview restarts no member: %v", report.Actions())
	}
	if len(steps) == last {
		report.Steps = slices.DeleteFunc(report.Steps, func(s preview.Step) bool { return s.Name == etcd.Restart })
	}
	stepped(t, "larger volumes", report, steps)
}

// needsPages writes values for which the database needs new pages. A member on a full disk panics
// when it applies them, also after a restart. Its client gets an error.
func (c *cluster) needsPages(t *testing.T) {
	t.Helper()
	leader := pb.NewKVClient(c.connect(t, c.get(t).Status.Leader))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := range 8 {
		_, _ = leader.Put(ctx, &pb.PutRequest{Key: fmt.Appendf(nil, "large/%d", n), Value: make([]byte, 1<<20)})
	}
}

// sizedClass is a StorageClass whose volumes are file systems of the requested size, which can be full.
func sizedClass(t *testing.T) *string {
	t.Helper()
	var classes storagev1.StorageClassList
	if err := api.List(t.Context(), &classes); err != nil {
		t.Fatal(err)
	}
	for _, like := range classes.Items {
		if like.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		class := like.DeepCopy()
		class.ObjectMeta, class.Parameters = metav1.ObjectMeta{Name: "e2e-sized"}, map[string]string{"enforceSize": "true"}
		if err := api.Create(t.Context(), class); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		return &class.Name
	}
	t.Fatal("no StorageClass is the default one")
	return nil
}

// fills deletes the log's next file, which etcd reserves, and fills the remaining space.
func fills(t *testing.T, dir string) {
	t.Helper()
	reserved, err := filepath.Glob(filepath.Join(dir, "data/member/wal/*.tmp"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range reserved {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var disk syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &disk); err != nil {
		t.Fatal(err)
	}
	if free := int64(disk.Bfree) * disk.Bsize; free > 1<<30 {
		t.Fatalf("the volume has %d bytes left: its StorageClass does not enforce the size", free)
	}
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
