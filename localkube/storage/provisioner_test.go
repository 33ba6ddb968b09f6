package storage

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func newProvisioner(t *testing.T) *provisioner {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node-1", Labels: map[string]string{corev1.LabelHostname: "host-1"},
	}}
	return &provisioner{
		nodes: fake.NewSimpleClientset(node).CoreV1().Nodes(),
		disk:  disk{root: t.TempDir()},
	}
}

func optionsFor(volumeType, node string) controller.ProvisionOptions {
	return controller.ProvisionOptions{
		StorageClass:     class(volumeType),
		PVName:           "pvc-1",
		SelectedNodeName: node,
		PVC: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			}},
		}},
	}
}

func TestProvisionThenDelete(t *testing.T) {
	for volumeType, want := range map[string]corev1.NodeSelectorRequirement{
		TypeLocal:   require(corev1.LabelHostname, "host-1"),
		TypeNetwork: require(corev1.LabelOSStable, "linux"),
	} {
		t.Run(volumeType, func(t *testing.T) {
			p := newProvisioner(t)
			volume, _, err := p.Provision(t.Context(), optionsFor(volumeType, "node-1"))
			if err != nil {
				t.Fatal(err)
			}
			checkVolume(t, volume, filepath.Join(p.disk.root, "pvc-1"), want)
			if err := p.Delete(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(volume.Spec.Local.Path); !os.IsNotExist(err) {
				t.Errorf("the folder is still there: %v", err)
			}
		})
	}
}

func checkVolume(t *testing.T, volume *corev1.PersistentVolume, path string, nodes corev1.NodeSelectorRequirement) {
	t.Helper()
	if volume.Name != "pvc-1" || volume.Spec.Local.Path != path {
		t.Errorf("got volume %s at %s, want pvc-1 at %s", volume.Name, volume.Spec.Local.Path, path)
	}
	if got := volume.Spec.Capacity.Storage(); got.String() != "1Gi" {
		t.Errorf("got capacity %s", got)
	}
	got := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	if got.Key != nodes.Key || !slices.Equal(got.Values, nodes.Values) {
		t.Errorf("got node affinity %v, want %v", got, nodes)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("folder: %v, %v, want mode 0777", info, err)
	}
}

func TestProvisionWithoutItsNode(t *testing.T) {
	p := newProvisioner(t)
	_, state, err := p.Provision(t.Context(), optionsFor(TypeLocal, "gone"))
	if err == nil || state != controller.ProvisioningReschedule {
		t.Errorf("node is gone: got %s, %v, want the claim rescheduled", state, err)
	}
	_, _, err = p.Provision(t.Context(), optionsFor(TypeLocal, ""))
	checkError(t, err, []string{"WaitForFirstConsumer"})
	if _, _, err = p.Provision(t.Context(), optionsFor(TypeNetwork, "")); err != nil {
		t.Errorf("a network volume needs no node: %v", err)
	}
}

func TestDeleteStaysInsideRoot(t *testing.T) {
	p := newProvisioner(t)
	outside := t.TempDir()
	for _, path := range []string{outside, p.disk.root, p.disk.root + "/.images", p.disk.root + "/a/b", p.disk.root + "/../x", "/"} {
		volume := &corev1.PersistentVolume{}
		volume.Spec.Local = &corev1.LocalVolumeSource{Path: path}
		if err := p.Delete(t.Context(), volume); err == nil {
			t.Errorf("a volume at %s was deleted", path)
		}
	}
	if err := p.Delete(t.Context(), &corev1.PersistentVolume{}); err == nil {
		t.Error("a volume without a path was deleted")
	}
}
