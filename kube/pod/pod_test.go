package pod_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/pod"
	"github.com/governor-dev/governor/lifecycle"
)

const container = "app"

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: container, Image: "a:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

func conditions(all ...corev1.PodCondition) corev1.PodStatus {
	return corev1.PodStatus{Conditions: all}
}

func crashed(restarts int32) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: container, RestartCount: restarts,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Error", ExitCode: 71, Message: "no more",
		}},
	}}}
}

func ended(phase corev1.PodPhase) corev1.PodStatus { return corev1.PodStatus{Phase: phase} }

func TestOf(t *testing.T) {
	since := time.Unix(100, 0)
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}
	lost := corev1.PodCondition{
		Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available.", LastTransitionTime: metav1.NewTime(since),
	}
	missing := pod.State{Problem: lifecycle.PodProblemImagePullBackOff, Detail: `image "a:1" cannot be pulled, the registry does not have it`}
	denied := pod.State{Problem: lifecycle.PodProblemImagePullBackOff, Detail: `image "a:1" cannot be pulled, the registry refuses access`}
	crashing := pod.State{
		Problem: lifecycle.PodProblemCrashLoopBackOff, Detail: "app exits repeatedly (Error, exit code 71)", TerminationMessage: "no more", LastTerminationMessage: "no more",
	}
	cases := map[string]struct {
		reason string
		status corev1.PodStatus
		want   pod.State
	}{
		"Young":     {"a pod without a status is not ready", corev1.PodStatus{}, pod.State{}},
		"Ready":     {"the Ready condition and its time are kept", conditions(ready), pod.State{Ready: true, Since: since}},
		"NoNode":    {"the scheduler's message and time are kept", conditions(lost), pod.State{Problem: lifecycle.PodProblemUnschedulable, Detail: "0/3 nodes are available", Since: since}},
		"Pull":      {"a failed pull", waiting("ErrImagePull", "rpc error: a:1: not found"), missing},
		"BackOff":   {"a backoff gives the same text as a failed pull", waiting("ImagePullBackOff", "Back-off pulling image: not found"), missing},
		"Denied":    {"a missing credential has its own text", waiting("ErrImagePull", "401 Unauthorized"), denied},
		"Config":    {"a container that cannot be created", waiting("CreateContainerError", "no such file.\nat x"), pod.State{Problem: lifecycle.PodProblemContainerCannotStart, Detail: "CreateContainerError: no such file"}},
		"Creating":  {"a container in creation is no problem", waiting("ContainerCreating", ""), pod.State{}},
		"OneCrash":  {"one crash is no crash loop", crashed(1), pod.State{TerminationMessage: "no more", LastTerminationMessage: "no more"}},
		"Crashing":  {"two crashes are a crash loop", crashed(2), crashing},
		"Evicted":   {"an evicted pod has failed", ended(corev1.PodFailed), pod.State{Finished: true}},
		"Succeeded": {"a pod that succeeded is finished", ended(corev1.PodSucceeded), pod.State{Finished: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pod.Of(&corev1.Pod{Status: c.status}, container)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
