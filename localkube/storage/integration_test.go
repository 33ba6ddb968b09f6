package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const testNode = "node-1"

// cluster is an API server with the provisioner's user, classes and one node.
// The test plays the scheduler and the volume controller.
type cluster struct {
	*testing.T
	client     kubernetes.Interface
	kubeconfig string
	disk       disk
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	d := newDisk(t)
	client, kubeconfig := startAPIServer(t)
	c := &cluster{T: t, client: client, kubeconfig: kubeconfig, disk: d}
	_, err := client.RbacV1().ClusterRoles().Create(t.Context(), ClusterRole(), metav1.CreateOptions{})
	check(t, err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: User},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: User},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User}},
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	check(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: testNode}}
	_, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	check(t, err)
	for _, class := range Classes() {
		c.create(class)
	}
	return c
}

func (c *cluster) create(class *storagev1.StorageClass) {
	c.Helper()
	_, err := c.client.StorageV1().StorageClasses().Create(c.Context(), class, metav1.CreateOptions{})
	check(c.T, err)
}

// server prepares a provisioner; all that a test needs before the first is run.
func (c *cluster) server() *server {
	c.Helper()
	server, err := start(c.Context(), Config{Kubeconfig: c.kubeconfig, Root: c.disk.root})
	check(c.T, err)
	return server
}

// run runs a provisioner until the returned function is called.
func (c *cluster) run(server *server) func() {
	ctx, cancel := context.WithCancel(c.Context())
	var running sync.WaitGroup
	running.Go(func() { server.run(ctx) })
	stop := func() {
		cancel()
		running.Wait()
	}
	c.Cleanup(stop)
	return stop
}

// claim creates a claim and does what the scheduler does when a pod uses it.
func (c *cluster) claim(name, class string, enforce bool) {
	c.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		"volume.kubernetes.io/selected-node":       testNode,
		"volume.kubernetes.io/storage-provisioner": Provisioner,
		EnforceSizeAnnotation:                      fmt.Sprint(enforce),
	}}}
	claim.Spec.StorageClassName = &class
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("32Mi")}
	_, err := c.claims().Create(c.Context(), claim, metav1.CreateOptions{})
	check(c.T, err)
}

func (c *cluster) claims() corev1client.PersistentVolumeClaimInterface {
	return c.client.CoreV1().PersistentVolumeClaims("default")
}

func (c *cluster) get(name string) *corev1.PersistentVolumeClaim {
	c.Helper()
	claim, err := c.claims().Get(c.Context(), name, metav1.GetOptions{})
	check(c.T, err)
	return claim
}

// bind waits for the claim's volume and does what the volume controller does.
func (c *cluster) bind(name string) *corev1.PersistentVolume {
	c.Helper()
	claim, volumes := c.get(name), c.client.CoreV1().PersistentVolumes()
	var volume *corev1.PersistentVolume
	eventually(c.T, func() (err error) {
		volume, err = volumes.Get(c.Context(), "pvc-"+string(claim.UID), metav1.GetOptions{})
		return err
	})
	c.setPhase(volume.Name, corev1.VolumeBound)
	claim.Spec.VolumeName = volume.Name
	claim, err := c.claims().Update(c.Context(), claim, metav1.UpdateOptions{})
	check(c.T, err)
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, volume.Spec.Capacity
	_, err = c.claims().UpdateStatus(c.Context(), claim, metav1.UpdateOptions{})
	check(c.T, err)
	return volume
}

func (c *cluster) setPhase(volume string, phase corev1.PersistentVolumePhase) {
	c.Helper()
	patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
	_, err := c.client.CoreV1().PersistentVolumes().Patch(c.Context(), volume, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	check(c.T, err)
}

func (c *cluster) request(name, size string) {
	c.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, size)
	_, err := c.claims().Patch(c.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	check(c.T, err)
}

// expectSize waits until claim, volume and disk agree on a size and no trace of
// the expansion is left.
func (c *cluster) expectSize(name, size string) {
	c.Helper()
	want := resource.MustParse(size)
	eventually(c.T, func() error {
		claim := c.get(name)
		volume, err := c.client.CoreV1().PersistentVolumes().Get(c.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if unfinished(claim) || claim.Status.Capacity.Storage().Cmp(want) != 0 || volume.Spec.Capacity.Storage().Cmp(want) != 0 {
			return fmt.Errorf("claim has status %+v, volume capacity %v", claim.Status, volume.Spec.Capacity)
		}
		return nil
	})
	var stat unix.Statfs_t
	check(c.T, unix.Statfs(c.disk.folder(c.get(name).Spec.VolumeName), &stat))
	if got := int64(stat.Blocks) * stat.Bsize; got > want.Value() || got < want.Value()-8*mebibyte {
		c.Errorf("the disk has %d bytes, want about %s", got, size)
	}
}

// expectEvent waits for an event on the claim with all the words.
func (c *cluster) expectEvent(name, reason string, words ...string) {
	c.Helper()
	eventually(c.T, func() error {
		events, err := c.client.CoreV1().Events("default").List(c.Context(), metav1.ListOptions{
			FieldSelector: "reason=" + reason + ",involvedObject.name=" + name,
		})
		for _, event := range events.Items {
			if containsAll(event.Message, words) {
				return nil
			}
		}
		return errors.Join(fmt.Errorf("claim %s has no event %s with %q", name, reason, words), err)
	})
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func (c *cluster) expectGone(volume string) {
	c.Helper()
	eventually(c.T, func() error {
		_, err := c.client.CoreV1().PersistentVolumes().Get(c.Context(), volume, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("volume %s is still there: %w", volume, err)
		}
		return nil
	})
	if _, err := os.Stat(c.disk.folder(volume)); !os.IsNotExist(err) {
		c.Errorf("its files are still there: %v", err)
	}
}

func TestLifeOfAVolume(t *testing.T) {
	c := newCluster(t)
	first, second := c.server(), c.server()
	stop := c.run(first)

	begin := time.Now()
	c.claim("data", TypeLocal, true)
	volume := c.bind("data")
	t.Logf("provisioned in %s", time.Since(begin))
	c.expectEvent("data", "ProvisioningSucceeded", volume.Name)

	begin = time.Now()
	c.request("data", "64Mi")
	c.expectSize("data", "64Mi")
	t.Logf("expanded in %s", time.Since(begin))
	c.expectEvent("data", resizeSuccessReason, volume.Name, "64Mi")

	// Stopped after it had changed the volume but not the claim.
	stop()
	c.request("data", "96Mi")
	check(t, c.disk.grow(t.Context(), volume.Name, 96*mebibyte))
	patch := []byte(`{"spec":{"capacity":{"storage":"96Mi"}}}`)
	_, err := c.client.CoreV1().PersistentVolumes().Patch(t.Context(), volume.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	check(t, err)
	c.run(second)
	c.expectSize("data", "96Mi")

	check(t, c.claims().Delete(t.Context(), "data", metav1.DeleteOptions{}))
	c.setPhase(volume.Name, corev1.VolumeReleased)
	c.expectGone(volume.Name)
}

func TestResizeFailsThenWorks(t *testing.T) {
	c := newCluster(t)
	c.claim("data", TypeNetwork, true)
	c.run(c.server())
	volume := c.bind("data")

	image := c.disk.image(volume.Name)
	check(t, os.Rename(image, image+".away"))
	check(t, os.Symlink(image, image)) // refers to itself, so nothing can open it
	c.request("data", "64Mi")
	c.expectEvent("data", resizeFailedReason, filepath.Base(image))
	eventually(t, func() error {
		if got := c.get("data").Status; len(got.Conditions) != 2 || got.Capacity.Storage().String() != "32Mi" {
			return fmt.Errorf("got status %+v", got)
		}
		return nil
	})

	check(t, os.Rename(image+".away", image))
	c.expectSize("data", "64Mi")
}

func TestRefusals(t *testing.T) {
	c := newCluster(t)
	odd := class("odd")
	c.create(odd)
	c.run(c.server())
	c.claim("odd", "odd", false)
	c.expectEvent("odd", "ProvisioningFailed", "StorageClass odd", `type="odd"`, TypeLocal, TypeNetwork)

	block := c.blockClaim()
	_, err := c.claims().Create(t.Context(), block, metav1.CreateOptions{})
	check(t, err)
	c.expectEvent("block", "ProvisioningFailed", "does not support block volume")
}

func (c *cluster) blockClaim() *corev1.PersistentVolumeClaim {
	c.Helper()
	c.claim("block", TypeLocal, false)
	claim := c.get("block")
	check(c.T, c.claims().Delete(c.Context(), "block", metav1.DeleteOptions{}))
	claim.ResourceVersion, claim.UID = "", ""
	claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	return claim
}
