package storage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Classes returns the StorageClasses of a localkube cluster: local, which is the
// default one, and network.
func Classes() []*storagev1.StorageClass {
	local := class(TypeLocal)
	local.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	return []*storagev1.StorageClass{local, class(TypeNetwork)}
}

func class(volumeType string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		TypeMeta:             metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:           metav1.ObjectMeta{Name: volumeType},
		Provisioner:          Provisioner,
		Parameters:           map[string]string{TypeParameter: volumeType},
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
		AllowVolumeExpansion: new(true),
		VolumeBindingMode:    new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

// ClusterRole returns the permissions that Run needs, named after User. They are
// cluster-wide: claims, and so the events about them, are in any namespace.
func ClusterRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: User},
		Rules: []rbacv1.PolicyRule{
			rule("", "persistentvolumes", "list", "watch", "create", "patch", "delete"),
			// An update of a claim gives a node back to the scheduler.
			rule("", "persistentvolumeclaims", "get", "list", "watch", "update"),
			rule("", "persistentvolumeclaims/status", "update"),
			rule("storage.k8s.io", "storageclasses", "list", "watch"),
			rule("", "nodes", "get"),
			rule("", "events", "create", "patch"),
		},
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// settings is what a StorageClass and a claim ask for together.
type settings struct {
	volumeType  string
	enforceSize bool
}

// parameters names every parameter that a StorageClass may have with the values
// that are allowed for it.
var parameters = map[string][]string{
	TypeParameter:        {TypeLocal, TypeNetwork},
	EnforceSizeParameter: {"true", "false"},
}

// settingsOf reads a StorageClass and the claim's annotation, which wins. An
// unknown parameter or value is an error, because a misspelt one that is ignored
// gives a volume that is not what its user takes it for.
func settingsOf(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim) (settings, error) {
	for name, value := range class.Parameters {
		allowed, known := parameters[name]
		if !known {
			return settings{}, fmt.Errorf("StorageClass %s: parameter %s=%q is unknown; allowed are %q",
				class.Name, name, value, slices.Sorted(maps.Keys(parameters)))
		}
		if !slices.Contains(allowed, value) {
			return settings{}, fmt.Errorf("StorageClass %s: parameter %s=%q is not allowed; allowed values are %q",
				class.Name, name, value, allowed)
		}
	}
	enforce, err := enforceSize(class, claim)
	return settings{volumeType: volumeType(class), enforceSize: enforce}, err
}

func volumeType(class *storagev1.StorageClass) string {
	if class.Parameters[TypeParameter] == TypeNetwork {
		return TypeNetwork
	}
	return TypeLocal
}

func enforceSize(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim) (bool, error) {
	value, set := claim.Annotations[EnforceSizeAnnotation]
	if !set {
		return class.Parameters[EnforceSizeParameter] == strconv.FormatBool(true), nil
	}
	if allowed := parameters[EnforceSizeParameter]; !slices.Contains(allowed, value) {
		return false, fmt.Errorf("annotation %s=%q is not allowed; allowed values are %q",
			EnforceSizeAnnotation, value, allowed)
	}
	return value == strconv.FormatBool(true), nil
}

// checkClaim refuses what a volume of this type cannot be, rather than to hand
// out one that differs from what was asked for.
func checkClaim(claim *corev1.PersistentVolumeClaim, volumeType string) error {
	if claim.Spec.Selector != nil {
		return fmt.Errorf("a claim with spec.selector is not provisioned for: a new volume has no labels to select")
	}
	if claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil {
		return fmt.Errorf("spec.dataSource is not supported: localkube has neither snapshots nor clones")
	}
	allowed := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	if volumeType == TypeNetwork {
		allowed = append(allowed, corev1.ReadWriteMany, corev1.ReadOnlyMany)
	}
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(allowed, mode) {
			return fmt.Errorf("access mode %s is not supported by volumes of type %s; supported are %q",
				mode, volumeType, allowed)
		}
	}
	return nil
}
