package storage

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The status of a claim in an expansion, see the fields' descriptions in
// PersistentVolumeClaimStatus (k8s.io/api/core/v1).

// finish writes that a claim has been expanded to size.
func finish(claim *corev1.PersistentVolumeClaim, size resource.Quantity) {
	status := &claim.Status
	if status.Capacity.Storage().Cmp(size) < 0 {
		setStorage(&status.Capacity, size)
	}
	setStorage(&status.AllocatedResources, size)
	status.Conditions = slices.DeleteFunc(status.Conditions, isResizeCondition)
	delete(status.AllocatedResourceStatuses, corev1.ResourceStorage)
}

// setFailed writes that a claim could not be expanded to size. Resizing stays
// set, as it is tried again.
func setFailed(claim *corev1.PersistentVolumeClaim, size resource.Quantity, cause error) {
	status := &claim.Status
	setStorage(&status.AllocatedResources, size)
	setCondition(status, corev1.PersistentVolumeClaimResizing, "")
	setCondition(status, corev1.PersistentVolumeClaimControllerResizeError, cause.Error())
	statuses := maps.Clone(status.AllocatedResourceStatuses)
	if statuses == nil {
		statuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	statuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimControllerResizeInProgress
	status.AllocatedResourceStatuses = statuses
}

func setStorage(list *corev1.ResourceList, size resource.Quantity) {
	changed := corev1.ResourceList{}
	maps.Copy(changed, *list)
	changed[corev1.ResourceStorage] = size
	*list = changed
}

// setCondition sets a condition to true. The time changes only if the condition
// was not set yet.
func setCondition(status *corev1.PersistentVolumeClaimStatus, kind corev1.PersistentVolumeClaimConditionType, message string) {
	same := func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind }
	index := slices.IndexFunc(status.Conditions, same)
	if index < 0 {
		index = len(status.Conditions)
		status.Conditions = append(status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind})
	}
	condition := &status.Conditions[index]
	if condition.Status != corev1.ConditionTrue {
		condition.Status, condition.LastTransitionTime = corev1.ConditionTrue, metav1.Now()
	}
	condition.Message = message
}
