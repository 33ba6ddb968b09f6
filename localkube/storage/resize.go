package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

// provisionedBy is the annotation in which a volume names its provisioner
// (kubernetes.io/docs/reference/labels-annotations-taints).
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// Reasons of the events on a claim, as the CSI resizer names them, so that what
// reads them works here too.
const (
	resizingReason      = "Resizing"
	resizeSuccessReason = "VolumeResizeSuccessful"
	resizeFailedReason  = "VolumeResizeFailed"
)

// resizer carries out the expansion of claims, which Kubernetes leaves to the
// provisioner. It works from the difference between what a claim requests and
// what it has, so it goes on after a restart wherever it was stopped.
type resizer struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	synced  []cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string]
	events  record.EventRecorder
	disk    disk
}

func newResizer(ctx context.Context, client kubernetes.Interface, claims coreinformers.PersistentVolumeClaimInformer, volumes coreinformers.PersistentVolumeInformer, disk disk) *resizer {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events(metav1.NamespaceAll)})
	r := &resizer{
		client:  client,
		claims:  claims.Lister(),
		volumes: volumes.Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(newLimiter()),
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Provisioner}),
		disk:    disk,
	}
	// The volume of a claim is looked up only when the claim is bound; if it is
	// not in the cache yet, the queue tries again.
	_, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.enqueue,
		UpdateFunc: r.enqueueChange,
	})
	utilruntime.HandleError(err)
	r.synced = []cache.InformerSynced{claims.Informer().HasSynced, volumes.Informer().HasSynced}
	return r
}

func (r *resizer) enqueue(object any) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || !unfinished(claim) {
		return
	}
	r.queue.Add(cache.MetaObjectToName(claim).String())
}

// enqueueChange leaves alone what is in the queue already: reporting a failure
// in a claim's status must not make the next try come at once.
func (r *resizer) enqueueChange(before, after any) {
	old, isOld := before.(*corev1.PersistentVolumeClaim)
	claim, isClaim := after.(*corev1.PersistentVolumeClaim)
	if isOld && isClaim && unfinished(old) && requested(old).Equal(*requested(claim)) {
		return
	}
	r.enqueue(after)
}

func (r *resizer) run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	context.AfterFunc(ctx, r.queue.ShutDown)
	if !cache.WaitForCacheSync(ctx.Done(), r.synced...) {
		return
	}
	for r.next(ctx) {
	}
}

func (r *resizer) next(ctx context.Context) bool {
	key, stopped := r.queue.Get()
	if stopped {
		return false
	}
	defer r.queue.Done(key)
	if err := r.sync(ctx, key); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Resizing failed", "claim", key)
		r.queue.AddRateLimited(key)
		return true
	}
	r.queue.Forget(key)
	return true
}

func (r *resizer) sync(ctx context.Context, key string) error {
	claim, err := r.claim(key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !unfinished(claim) {
		return err
	}
	volume, err := r.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	size, needed := target(claim, volume)
	if !needed {
		return nil
	}
	err = r.resize(ctx, claim, volume, size)
	if err != nil {
		r.events.Event(claim, corev1.EventTypeWarning, resizeFailedReason, err.Error())
	}
	return err
}

func (r *resizer) claim(key string) (*corev1.PersistentVolumeClaim, error) {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return nil, err
	}
	return r.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
}

// unfinished tells whether a bound claim requests more than it has, or carries
// the traces of an expansion that was not brought to its end.
func unfinished(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Status.Phase != corev1.ClaimBound {
		return false
	}
	return requested(claim).Cmp(*claim.Status.Capacity.Storage()) > 0 ||
		slices.ContainsFunc(claim.Status.Conditions, isResizeCondition) ||
		claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] != ""
}

func requested(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}

func isResizeCondition(condition corev1.PersistentVolumeClaimCondition) bool {
	return slices.Contains([]corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimResizing,
		corev1.PersistentVolumeClaimControllerResizeError,
		corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimNodeResizeError,
	}, condition.Type)
}

// target returns the size that a claim is to have, and whether there is anything
// to do for it. The volume may be larger than requested, if the request was
// lowered (which the API allows down to the claim's capacity) after the volume
// had grown; volumes do not shrink, so the claim then gets what there is.
func target(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (resource.Quantity, bool) {
	owner := volume.Spec.ClaimRef
	ours := volume.Annotations[provisionedBy] == Provisioner && owner != nil && owner.UID == claim.UID
	if !ours || !unfinished(claim) {
		return resource.Quantity{}, false
	}
	size, capacity := *requested(claim), *volume.Spec.Capacity.Storage()
	if capacity.Cmp(size) > 0 {
		size = capacity
	}
	return size, true
}

// resize grows first the disk, then what the volume and at last what the claim
// says of it, so that none promises more than there is. Each step can be done
// again.
func (r *resizer) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, size resource.Quantity) error {
	r.events.Eventf(claim, corev1.EventTypeNormal, resizingReason, "Resizing volume %s to %s", volume.Name, size.String())
	if err := r.grow(ctx, volume, size); err != nil {
		return r.fail(ctx, claim, size, err)
	}
	if err := r.setVolumeSize(ctx, volume, size); err != nil {
		return err
	}
	if err := r.updateStatus(ctx, claim, func(c *corev1.PersistentVolumeClaim) { finish(c, size) }); err != nil {
		return err
	}
	r.events.Eventf(claim, corev1.EventTypeNormal, resizeSuccessReason, "Resized volume %s to %s", volume.Name, size.String())
	return nil
}

func (r *resizer) grow(ctx context.Context, volume *corev1.PersistentVolume, size resource.Quantity) error {
	id, err := r.disk.idOf(volume)
	if err != nil {
		return err
	}
	return r.disk.grow(ctx, id, size.Value())
}

// fail writes into the claim why it could not be expanded, and returns the cause.
func (r *resizer) fail(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity, cause error) error {
	err := r.updateStatus(ctx, claim, func(c *corev1.PersistentVolumeClaim) { setFailed(c, size, cause) })
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Could not report a failed resize")
	}
	return cause
}

func (r *resizer) setVolumeSize(ctx context.Context, volume *corev1.PersistentVolume, size resource.Quantity) error {
	if volume.Spec.Capacity.Storage().Cmp(size) >= 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"capacity": corev1.ResourceList{corev1.ResourceStorage: size},
	}})
	if err != nil {
		return err
	}
	_, err = r.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// updateStatus changes a claim's status. The kubelet and the volume controller
// write to it too, so a conflict is settled on the claim as it now is.
func (r *resizer) updateStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaim)) error {
	claims, latest := r.client.CoreV1().PersistentVolumeClaims(claim.Namespace), claim.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := latest.DeepCopy()
		change(latest)
		if apiequality.Semantic.DeepEqual(before.Status, latest.Status) {
			return nil
		}
		_, err := claims.UpdateStatus(ctx, latest, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			current, getErr := claims.Get(ctx, claim.Name, metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			latest = current
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("update the claim's status: %w", err)
	}
	return nil
}
