package driver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/apps/memcached"
)

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: memcached.Name, Image: "a:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

func conditions(all ...corev1.PodCondition) corev1.PodStatus {
	return corev1.PodStatus{Conditions: all}
}

func crashed(restarts int32) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: memcached.Name, RestartCount: restarts,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 71}},
	}}}
}

func TestPod(t *testing.T) {
	since := time.Unix(100, 0)
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	lost := corev1.PodCondition{
		Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available.", LastTransitionTime: metav1.NewTime(since),
	}
	missing := memcached.Pod{Trouble: memcached.ImageUnpullable, Detail: `image "a:1" cannot be pulled, the registry does not have it`}
	cases := map[string]struct {
		reason string
		status corev1.PodStatus
		want   memcached.Pod
	}{
		"Young":    {"a pod about which nothing is known is not ready", corev1.PodStatus{}, memcached.Pod{}},
		"Ready":    {"Kubernetes' probe says that it answers", conditions(ready), memcached.Pod{Ready: true}},
		"NoNode":   {"the scheduler's words and time are kept", conditions(lost), memcached.Pod{Trouble: memcached.Unschedulable, Detail: "0/3 nodes are available", Since: since}},
		"Pull":     {"a failed pull", waiting("ErrImagePull", "rpc error: a:1: not found"), missing},
		"BackOff":  {"the pause after it is told in the same words", waiting("ImagePullBackOff", "Back-off pulling image: not found"), missing},
		"Denied":   {"a missing credential is another matter", waiting("ErrImagePull", "401 Unauthorized"), memcached.Pod{Trouble: memcached.ImageUnpullable, Detail: `image "a:1" cannot be pulled, the registry refuses access`}},
		"Config":   {"a container that cannot be made", waiting("CreateContainerError", "no such file.\nat x"), memcached.Pod{Trouble: memcached.BadContainer, Detail: "CreateContainerError: no such file"}},
		"Creating": {"to be created is no trouble", waiting("ContainerCreating", ""), memcached.Pod{}},
		"OneCrash": {"once is no habit", crashed(1), memcached.Pod{}},
		"Crashing": {"twice is", crashed(2), memcached.Pod{Trouble: memcached.CrashLooping, Detail: "memcached ends again and again (Error, exit code 71)"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pod(&corev1.Pod{Status: c.status})); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestRefusalHasNoPodName(t *testing.T) {
	dep := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Message: `pods "m-5d4-x7z" is forbidden: exceeded quota: q`,
	}}}}
	if got := rollout(dep).Refused; got != "exceeded quota: q" {
		t.Errorf("got %q: the random name of a pod would make the status flap", got)
	}
}
