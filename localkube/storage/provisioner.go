package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// provisioner makes and removes the volumes that the provisioning controller
// asks for.
type provisioner struct {
	nodes corev1client.NodeInterface
	disk  disk
}

var _ controller.Provisioner = (*provisioner)(nil)

// Provision makes the volume's files and describes them. Called again for the
// same claim it goes on where it was interrupted.
func (p *provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	settings, err := settingsOf(options.StorageClass, options.PVC)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := checkClaim(options.PVC, settings.volumeType); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	nodes, state, err := p.nodesFor(ctx, options, settings.volumeType)
	if err != nil {
		return nil, state, err
	}
	path, err := p.create(ctx, options, settings)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return newVolume(options, path, nodes), controller.ProvisioningFinished, nil
}

// nodesFor returns the requirement that a node has to meet to use the volume.
func (p *provisioner) nodesFor(ctx context.Context, options controller.ProvisionOptions, volumeType string) (corev1.NodeSelectorRequirement, controller.ProvisioningState, error) {
	if volumeType == TypeNetwork {
		// The API refuses a local volume without node affinity, so name
		// something that is true of every node.
		return require(corev1.LabelOSStable, string(corev1.Linux)), controller.ProvisioningFinished, nil
	}
	if options.SelectedNodeName == "" {
		return corev1.NodeSelectorRequirement{}, controller.ProvisioningFinished,
			fmt.Errorf("StorageClass %s: volumes of type %s need volumeBindingMode WaitForFirstConsumer",
				options.StorageClass.Name, TypeLocal)
	}
	node, err := p.nodes.Get(ctx, options.SelectedNodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return corev1.NodeSelectorRequirement{}, controller.ProvisioningReschedule, err
	}
	if err != nil {
		return corev1.NodeSelectorRequirement{}, controller.ProvisioningNoChange, err
	}
	return require(corev1.LabelHostname, hostname(node)), controller.ProvisioningFinished, nil
}

func hostname(node *corev1.Node) string {
	if name := node.Labels[corev1.LabelHostname]; name != "" {
		return name
	}
	return node.Name
}

func require(label, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{
		Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
	}
}

func (p *provisioner) create(ctx context.Context, options controller.ProvisionOptions, settings settings) (string, error) {
	if !settings.enforceSize {
		return p.disk.createFolder(options.PVName)
	}
	size := options.PVC.Spec.Resources.Requests.Storage()
	return p.disk.createImage(ctx, options.PVName, size.Value())
}

func newVolume(options controller.ProvisionOptions, path string, nodes corev1.NodeSelectorRequirement) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: *options.PVC.Spec.Resources.Requests.Storage(),
			},
			AccessModes:                   options.PVC.Spec.AccessModes,
			MountOptions:                  options.StorageClass.MountOptions,
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			VolumeMode:                    options.PVC.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: path},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{nodes}},
				},
			}},
		},
	}
}

// Delete removes the volume's files. What is already gone is not missed.
func (p *provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	id, err := p.disk.idOf(volume)
	if err != nil {
		return err
	}
	return p.disk.remove(id)
}

// idOf returns the name of the volume's folder. It is taken from the path
// rather than from the volume's name, because a retained volume may have been
// given a new PersistentVolume by hand; a path elsewhere is an error, as this
// process may delete anything on the host.
func (d disk) idOf(volume *corev1.PersistentVolume) (string, error) {
	if volume.Spec.Local == nil {
		return "", fmt.Errorf("volume %s is not of type local", volume.Name)
	}
	parent, id := filepath.Split(filepath.Clean(volume.Spec.Local.Path))
	if filepath.Clean(parent) != d.root || id == "" || strings.HasPrefix(id, ".") {
		return "", fmt.Errorf("volume %s: path %s is not a folder of %s", volume.Name, volume.Spec.Local.Path, d.root)
	}
	return id, nil
}
