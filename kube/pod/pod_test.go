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

func initContainer(c corev1.ContainerStatus, started bool) corev1.PodStatus {
	main := corev1.ContainerStatus{Name: container}
	if started {
		main.State.Running = &corev1.ContainerStateRunning{}
	}
	c.Name, c.Image, c.Ready = "init", "b:1", started
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{main}, InitContainerStatuses: []corev1.ContainerStatus{c}}
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

// TestOfEditedImage: the kubelet reports the image that ran before, and the message names the new one.
func TestOfEditedImage(t *testing.T) {
	p := &corev1.Pod{
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "none:1"}}},
		Status: waiting("ErrImagePull", ""),
	}
	if got, want := pod.Of(p, container).Detail, `image "none:1" cannot be pulled`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
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
		"InitPull":  {"an init container keeps the main one from starting", initContainer(waiting("ErrImagePull", "not found").ContainerStatuses[0], false), pod.State{Container: "init", Problem: lifecycle.PodProblemImagePullBackOff, Detail: `init container init: image "b:1" cannot be pulled, the registry does not have it`}},
		"InitCrash": {"its crashes say nothing about the application", initContainer(crashed(2).ContainerStatuses[0], false), pod.State{Container: "init", Problem: lifecycle.PodProblemContainerCannotStart, Detail: "init container init: init exits repeatedly (Error, exit code 71)"}},
		"Gated":     {"a scheduling gate keeps the pod from a node", conditions(corev1.PodCondition{Type: corev1.PodScheduled, Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates", LastTransitionTime: metav1.NewTime(since)}), pod.State{Problem: lifecycle.PodProblemUnschedulable, Detail: "Scheduling is blocked due to non-empty scheduling gates", Since: since}},
		"Beside":    {"a sidecar keeps the pod from being ready", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: container}, {Name: "s", Image: "b:1", State: waiting("ErrImagePull", "not found").ContainerStatuses[0].State}}}, pod.State{Container: "s", Problem: lifecycle.PodProblemImagePullBackOff, Detail: `container s: image "b:1" cannot be pulled, the registry does not have it`}},
		"Started":   {"an init container that completed has no problem", initContainer(crashed(2).ContainerStatuses[0], true), pod.State{Running: true}},
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

// TestImageEdited: kubectl set image changes a pod that has run; a webhook changes one before it runs.
func TestImageEdited(t *testing.T) {
	pull := waiting("ErrImagePull", "not found").ContainerStatuses[0]
	ran := pull
	ran.LastTerminationState = crashed(1).ContainerStatuses[0].LastTerminationState
	running := ran
	running.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashes := ran
	crashes.State = waiting("CrashLoopBackOff", "").ContainerStatuses[0].State
	cases := map[string]struct {
		image  string
		status corev1.ContainerStatus
		want   bool
	}{
		"Edited":   {"none:1", ran, true},
		"Same":     {"a:1", ran, false},
		"Mirrored": {"mirror/a:1", pull, false},
		"Runs":     {"b:1", running, false},
		"Crashes":  {"mirror/a:1", crashes, false},
	}
	template := corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "a:1"}}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: c.image}}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{c.status}
			if got := pod.ImageEdited(p, template, container); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
