package driver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// storage adds why volumes cannot be had or grown. The class is read only when a
// volume is not as it should be.
func (d *Driver) storage(ctx context.Context, want *etcdv1.EtcdCluster, p parts, members []etcd.Member) error {
	for i := range members {
		claim := p.claims[members[i].Name]
		if claim == nil {
			continue
		}
		pending, small := claim.Status.Phase == corev1.ClaimPending, tooSmall(want, claim)
		if !pending && !small {
			continue
		}
		problem, err := d.problem(ctx, claim, small)
		if err != nil {
			return err
		}
		members[i].Volume.Problem = problem
	}
	return nil
}

func tooSmall(want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim) bool {
	size := want.Spec.Storage.Size
	return size != nil && claim.Spec.Resources.Requests.Storage().Cmp(*size) < 0
}

func (d *Driver) problem(ctx context.Context, claim *corev1.PersistentVolumeClaim, grow bool) (string, error) {
	if claim.Spec.StorageClassName == nil {
		return "spec.storage.storageClassName is not set, and no StorageClass is the default", nil
	}
	name := *claim.Spec.StorageClassName
	class := &storagev1.StorageClass{}
	err := d.live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the StorageClass %q does not exist", name), nil
	case err != nil:
		return "", fmt.Errorf("cannot read the StorageClass %q: %w", name, err)
	case grow && (class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion):
		return fmt.Sprintf("the StorageClass %q does not allow volumes to grow", name), nil
	}
	return "", nil
}
