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
	missing := pod.State{Trouble: lifecycle.PodProblemImagePullBackOff, Detail: `image "a:1" cannot be pulled, the registry does not have it`}
	denied := pod.State{Trouble: lifecycle.PodProblemImagePullBackOff, Detail: `image "a:1" cannot be pulled, the registry refuses access`}
	crashing := pod.State{
		Trouble: lifecycle.PodProblemCrashLoopBackOff, Detail: "app ends again and again (Error, exit code 71)", TerminationMessage: "no more", Epitaph: "no more",
	}
	cases := map[string]struct {
		reason string
		status corev1.PodStatus
		want   pod.State
	}{
		"Young":     {"a pod about which nothing is known is not ready", corev1.PodStatus{}, pod.State{}},
		"Ready":     {"Kubernetes' probe says that it answers", conditions(ready), pod.State{Ready: true, Since: since}},
		"NoNode":    {"the scheduler's words and time are kept", conditions(lost), pod.State{Trouble: lifecycle.PodProblemUnschedulable, Detail: "0/3 nodes are available", Since: since}},
		"Pull":      {"a failed pull", waiting("ErrImagePull", "rpc error: a:1: not found"), missing},
		"BackOff":   {"the pause after it is told in the same words", waiting("ImagePullBackOff", "Back-off pulling image: not found"), missing},
		"Denied":    {"a missing credential is another matter", waiting("ErrImagePull", "401 Unauthorized"), denied},
		"Config":    {"a container that cannot be made", waiting("CreateContainerError", "no such file.\nat x"), pod.State{Trouble: lifecycle.PodProblemContainerCannotStart, Detail: "CreateContainerError: no such file"}},
		"Creating":  {"to be created is no trouble", waiting("ContainerCreating", ""), pod.State{}},
		"OneCrash":  {"once is no habit", crashed(1), pod.State{TerminationMessage: "no more", Epitaph: "no more"}},
		"Crashing":  {"twice is", crashed(2), crashing},
		"Evicted":   {"an evicted pod has failed", ended(corev1.PodFailed), pod.State{Ended: true}},
		"Succeeded": {"one that ended well does not run either", ended(corev1.PodSucceeded), pod.State{Ended: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pod.Of(&corev1.Pod{Status: c.status}, container)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
