package storage

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claimOf(request, capacity string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	return claim
}

func volumeOf(capacity string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{provisionedBy: Provisioner},
	}}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	volume.Spec.ClaimRef = &corev1.ObjectReference{UID: "1"}
	return volume
}

func TestTarget(t *testing.T) {
	pending := claimOf("2Gi", "1Gi")
	pending.Status.Phase = corev1.ClaimPending
	failed := claimOf("2Gi", "2Gi")
	setFailed(failed, resource.MustParse("3Gi"), errors.New("full"))
	foreign := volumeOf("1Gi")
	foreign.Annotations[provisionedBy] = "other"
	others := volumeOf("1Gi")
	others.Spec.ClaimRef.UID = "2"

	for name, test := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		want   string // "" if there is nothing to do
	}{
		"nothing asked":                   {claimOf("1Gi", "1Gi"), volumeOf("1Gi"), ""},
		"less than there is":              {claimOf("1Gi", "2Gi"), volumeOf("2Gi"), ""},
		"more":                            {claimOf("2Gi", "1Gi"), volumeOf("1Gi"), "2Gi"},
		"stopped after the volume":        {claimOf("2Gi", "1Gi"), volumeOf("2Gi"), "2Gi"},
		"request lowered after a success": {claimOf("2Gi", "1Gi"), volumeOf("3Gi"), "3Gi"},
		"only traces of a failure":        {failed, volumeOf("2Gi"), "2Gi"},
		"not bound":                       {pending, volumeOf("1Gi"), ""},
		"volume of another provisioner":   {claimOf("2Gi", "1Gi"), foreign, ""},
		"volume of another claim":         {claimOf("2Gi", "1Gi"), others, ""},
		"volume of no claim":              {claimOf("2Gi", "1Gi"), &corev1.PersistentVolume{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			size, needed := target(test.claim, test.volume)
			if needed != (test.want != "") || needed && size.String() != test.want {
				t.Errorf("got %s, %t, want %q", size.String(), needed, test.want)
			}
		})
	}
}

func TestStatusOfAClaim(t *testing.T) {
	claim, size := claimOf("2Gi", "1Gi"), resource.MustParse("2Gi")
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "Other"}}

	setFailed(claim, size, errors.New("first"))
	setFailed(claim, size, errors.New("second"))
	if got := claim.Status.Conditions; len(got) != 3 || got[2].Message != "second" {
		t.Errorf("after two failures: got conditions %v", got)
	}
	if got := claim.Status.Capacity.Storage().String(); got != "1Gi" {
		t.Errorf("after a failure: got capacity %s", got)
	}

	finish(claim, size)
	if got := claim.Status.Capacity.Storage().String(); got != "2Gi" {
		t.Errorf("at the end: got capacity %s", got)
	}
	if got := claim.Status.Conditions; len(got) != 1 || got[0].Type != "Other" {
		t.Errorf("at the end: got conditions %v", got)
	}
	if unfinished(claim) {
		t.Error("at the end: the claim is taken for unfinished")
	}
}
