package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// storage adds why volumes cannot be provisioned or grown. It reads the StorageClass only for a
// pending or too small volume.
func (d *Driver) storage(ctx context.Context, want *etcdv1.EtcdCluster, p parts, members []etcd.Member) error {
	for i := range members {
		claim := p.claims[members[i].Name]
		if claim == nil {
			continue
		}
		pending, small := claim.Status.Phase == corev1.ClaimPending, tooSmall(want, claim)
		members[i].Volume.Pending, members[i].Volume.AwaitsPod = pending, awaitsPod(claim, p.pods[members[i].Name])
		if !pending && !small {
			continue
		}
		problem, err := d.problem(ctx, want, claim, small && !pending)
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

func (d *Driver) problem(ctx context.Context, want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim, grow bool) (string, error) {
	if claim.Spec.StorageClassName == nil {
		return "spec.storage.storageClassName is not set, and no StorageClass is the default. Make one the default", nil
	}
	name := *claim.Spec.StorageClassName
	switch {
	case name == "" && grow:
		return d.refusal(ctx, want, claim), nil
	case name == "":
		return "spec.storage.storageClassName is empty, and no PersistentVolume without a class is free. Create one", nil
	}
	class := &storagev1.StorageClass{}
	err := d.live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the StorageClass %q does not exist. Create it", name), nil
	case err != nil:
		return "", fmt.Errorf("cannot read the StorageClass %q: %w", name, err)
	case grow && (class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion):
		return fmt.Sprintf("the StorageClass %q does not allow volumes to grow; set its allowVolumeExpansion to true, if its driver can expand them", name), nil
	case grow:
		return d.refusal(ctx, want, claim), nil
	}
	return "", nil
}

// refusal is why the API server would reject the growth of the claim, such as a ResourceQuota.
// It uses a dry run, because a step that fails repeatedly would delay every repair.
func (d *Driver) refusal(ctx context.Context, want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim) string {
	asked := claim.DeepCopy()
	asked.Spec.Resources.Requests[corev1.ResourceStorage] = *want.Spec.Storage.Size
	err := d.client.Patch(ctx, asked, client.MergeFrom(claim), client.DryRunAll)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return strings.TrimSuffix(err.Error(), ".")
	}
	return ""
}

// annotationGrown is the UID of the pod that existed at the last request to grow the claim. Times of
// the operator and of the API server are by different clocks.
const annotationGrown = "etcd.database.coreos.com/grown-under"

// awaitsPod reports that the volume has grown under the pod.
func awaitsPod(claim *corev1.PersistentVolumeClaim, found *corev1.Pod) bool {
	under := claim.Annotations[annotationGrown]
	return found != nil && under != "" && under == string(found.UID)
}

// grow requests more storage, and records the pod that uses the volume.
func (d *Driver) grow(ctx context.Context, p parts, s lifecycle.Step) error {
	seen := p.claims[s.Target]
	args, err := lifecycle.ArgsOf[etcd.GrowArgs](s)
	if err != nil {
		return err
	}
	if seen == nil {
		return fmt.Errorf("%s: there is no volume", s)
	}
	size := *resource.NewQuantity(args.Size, resource.BinarySI)
	claim := seen.DeepCopy()
	return d.edit(ctx, claim, func() {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = size
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		if running := p.pods[s.Target]; running != nil {
			claim.Annotations[annotationGrown] = string(running.UID)
		}
	})
}

const quotaFlag = "--quota-backend-bytes="

// keepQuota keeps the default quota of the present StatefulSet in its declaration. The default
// depends on the volume and the data, and changes only at the member's next restart.
func keepQuota(want *etcdv1.EtcdCluster, declared, set *appsv1.StatefulSet) {
	if want.Spec.Options.Quota != nil || len(set.Spec.Template.Spec.Containers) == 0 {
		return
	}
	isQuota := func(arg string) bool { return strings.HasPrefix(arg, quotaFlag) }
	has := set.Spec.Template.Spec.Containers[0].Args
	args := declared.Spec.Template.Spec.Containers[0].Args
	is, was := slices.IndexFunc(args, isQuota), slices.IndexFunc(has, isQuota)
	switch {
	case is >= 0 && was >= 0:
		args[is] = has[was]
	case is >= 0:
		declared.Spec.Template.Spec.Containers[0].Args = slices.Delete(args, is, is+1)
	}
}
