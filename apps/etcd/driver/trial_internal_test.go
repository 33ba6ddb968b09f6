package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

func TestTrialOf(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no"}}
	}
	ended := func(code int32, reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
	}
	cases := map[string]struct {
		reason  string
		phase   corev1.PodPhase
		state   corev1.ContainerState
		passed  bool
		problem lifecycle.PodProblem
		unknown bool
	}{
		"Pulling":    {"it has no result yet", corev1.PodPending, waiting("ContainerCreating"), false, "", false},
		"Passed":     {"etcd printed its version", corev1.PodSucceeded, ended(0, "Completed", ""), true, "", false},
		"Sidecar":    {"a container that was added to it runs on", corev1.PodRunning, ended(0, "Completed", ""), true, "", false},
		"NoImage":    {"the image cannot be pulled", corev1.PodPending, waiting("ErrImagePull"), false, lifecycle.PodProblemImagePullBackOff, false},
		"NoSecret":   {"a variable has no source", corev1.PodPending, waiting("CreateContainerConfigError"), false, lifecycle.PodProblemContainerCannotStart, false},
		"BadFlag":    {"etcd refuses a flag", corev1.PodFailed, ended(2, "Error", "flag provided but not defined: -x\nUsage:"), false, lifecycle.PodProblemCrashLoopBackOff, false},
		"Killed":     {"a signal is no answer of etcd", corev1.PodFailed, ended(137, "Error", ""), false, "", true},
		"NoMemory":   {"nor is a lack of memory", corev1.PodFailed, ended(1, "OOMKilled", ""), false, "", true},
		"NodeLost":   {"nor a lost node", corev1.PodFailed, ended(137, "ContainerStatusUnknown", ""), false, "", true},
		"NoRoom":     {"the kubelet refuses the pod", corev1.PodFailed, corev1.ContainerState{}, false, "", true},
		"NotStarted": {"nothing is known yet", corev1.PodPending, corev1.ContainerState{}, false, "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: []corev1.ContainerStatus{{Name: etcd.Name, State: c.state}}}}
			got := trialOf(pod)
			if got.Passed != c.passed || got.Problem != c.problem || (got.Unknown != "") != c.unknown || (got.Problem == "") != (got.Detail == "") {
				t.Errorf("%s: %+v", c.reason, got)
			}
		})
	}
}

// A trial pod is created on the member's node, is the cluster's own, and is found by that. One that
// the API server rejects for good is not tried again; an error that may pass is.
func TestStartTrial(t *testing.T) {
	cases := map[string]struct {
		answer          error
		fails, recorded bool
	}{
		"Created": {nil, false, false},
		"Refused": {apierrors.NewForbidden(corev1.Resource("pods"), "e-trial", errors.New("exceeded quota")), false, true},
		"Away":    {apierrors.NewInternalError(errors.New("webhook")), true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want, seen := templated()
			want.Spec.Pod.ServiceAccountName = "other"
			s, _ := etcd.NextTemplate(want, seen)
			var created *corev1.Pod
			api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
					created = obj.(*corev1.Pod)
					return c.answer
				},
			}).Build()
			d := &Driver{client: api, live: api, refusedTrials: newRefusedTrials()}
			if err := d.startTrial(t.Context(), want, view{world: seen}, s); (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
			if got := d.trial(want, nil); !got.Possible || (got.Template == etcd.TemplateOf(s)) != c.recorded || (got.Unknown != "") != c.recorded {
				t.Errorf("the trial is %+v", got)
			}
			if created.Namespace != "ns" || !metav1.IsControlledBy(created, want) || findTrial(want, []corev1.Pod{*created}) == nil {
				t.Errorf("the pod is %+v", created)
			}
			if err := d.deleteTrial(t.Context(), want, parts{}); err != nil || d.trial(want, nil).Template != "" {
				t.Errorf("it is not forgotten: %v", err)
			}
		})
	}
}

// A trial pod that is being deleted tells nothing, and no other is created beside it.
func TestTrialWaitsForAnEarlierOne(t *testing.T) {
	want, seen := templated()
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "e-trial", DeletionTimestamp: &metav1.Time{Time: noon}}}
	d := &Driver{refusedTrials: newRefusedTrials(), now: func() time.Time { return noon }}
	var later *lifecycle.Deferred
	if err := d.startTrial(t.Context(), want, view{world: seen, parts: parts{trial: leaving}}, lifecycle.Step{}); !errors.As(err, &later) {
		t.Errorf("%v", err)
	}
	if got := d.trial(want, leaving); got.Template != "" || got.Passed {
		t.Errorf("it is %+v", got)
	}
	stranger := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "e-trial"}}
	if findTrial(want, []corev1.Pod{stranger}) != nil {
		t.Error("the pod of another is taken for the trial pod")
	}
}

// A trial pod whose deletion does not end, because its node is gone or another controller has a finalizer on it, does not hold
// the later changes of the spec. The first member then finds out.
func TestATrialPodThatDoesNotGoHoldsNothing(t *testing.T) {
	want, seen := templated()
	want.Spec.Pod.PriorityClassName = "changed"
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	leaving := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "e-trial", CreationTimestamp: hourAgo, DeletionTimestamp: &hourAgo, Finalizers: []string{"example.com/other"}}}
	d := &Driver{refusedTrials: newRefusedTrials(), now: time.Now}
	seen.ClusterID, seen.Members[0].Leads, seen.Members[0].Set.Exposure, seen.Members[0].Pod.Exposure = 1, true, etcd.Exposed, etcd.Exposed
	seen.Members[0].PeerURL = etcd.PeerURL(want, "e-0")
	seen.Trial = d.trial(want, leaving)
	next := etcd.Planner{}.Next(want, seen, time.Now())
	if err := d.startTrial(t.Context(), want, view{world: seen, parts: parts{trial: leaving}}, next.Step); next.Step.Name != etcd.StartTrial || err != nil {
		t.Fatalf("an hour later: %s, %v", next, err)
	}
	seen.Trial = d.trial(want, leaving)
	if next := (etcd.Planner{}).Next(want, seen, time.Now()); next.Step.Name != etcd.Restart {
		t.Errorf("then: %s", next)
	}
}

// TestUnscheduledTrial: the scheduler says why no node takes the pod. A gate of another controller says nothing, and the
// time of the trial begins when the pod has a node.
func TestUnscheduledTrial(t *testing.T) {
	scheduling := func(status corev1.ConditionStatus, reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: "0/3 nodes are available.", LastTransitionTime: metav1.Time{Time: noon}},
		}}}
	}
	if got := trialOf(scheduling(corev1.ConditionFalse, corev1.PodReasonUnschedulable)); got.Unscheduled != "0/3 nodes are available" || got.Problem != lifecycle.PodProblemNone {
		t.Errorf("%+v", got)
	}
	if got := trialOf(scheduling(corev1.ConditionFalse, corev1.PodReasonSchedulingGated)); got != (etcd.Trial{}) {
		t.Errorf("gated: %+v", got)
	}
	found := scheduling(corev1.ConditionTrue, "")
	found.CreationTimestamp = metav1.Time{Time: noon.Add(-time.Hour)}
	if got := (&Driver{}).trial(plain(""), found); !got.Since.Equal(noon) || got.Unscheduled != "" {
		t.Errorf("scheduled: %+v", got)
	}
}
