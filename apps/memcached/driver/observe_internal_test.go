package driver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestRefusalHasNoPodName(t *testing.T) {
	dep := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Message: `pods "m-5d4-x7z" is forbidden: exceeded quota: q`,
	}}}}
	if got := rollout(dep).Refused; got != "exceeded quota: q" {
		t.Errorf("got %q, want no random pod name in the status", got)
	}
}
