package observe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/kube/observe"
	"github.com/governor-dev/governor/lifecycle/job"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// aJob began at noon and may take an hour.
func aJob(conditions ...batchv1.JobCondition) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", UID: "j", CreationTimestamp: metav1.NewTime(noon.Add(-time.Second))}}
	j.Spec.ActiveDeadlineSeconds = new(int64(3600))
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	j.Status = batchv1.JobStatus{StartTime: new(metav1.NewTime(noon)), Conditions: conditions}
	return j
}

func condition(kind batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

// aPod was created so many seconds after noon.
func aPod(name string, after int, phase corev1.PodPhase, c corev1.ContainerState) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: name, Labels: map[string]string{batchv1.JobNameLabel: "b"},
			CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(after) * time.Second)),
			OwnerReferences:   []metav1.OwnerReference{{Kind: "Job", Name: "b", UID: "j", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "i:1", State: c}}},
	}
}

func ended(message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
}

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

var runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

func TestJobState(t *testing.T) {
	base := job.State{Name: "b", Phase: job.PhasePending, Since: noon, Deadline: noon.Add(time.Hour)}
	with := func(edit func(*job.State)) job.State { s := base; edit(&s); return s }
	suspended := aJob()
	suspended.Spec.Suspend = new(true)
	young := aJob()
	young.Status.StartTime = nil
	foreign := aPod("x", 0, corev1.PodRunning, runs)
	foreign.OwnerReferences[0].UID = "earlier"
	leaving := aJob(condition(batchv1.JobComplete, "", ""))
	leaving.DeletionTimestamp = new(metav1.NewTime(noon))
	cases := map[string]struct {
		reason string
		job    *batchv1.Job
		pods   []corev1.Pod
		want   job.State
	}{
		"New":      {"no pod exists yet", aJob(), nil, base},
		"Young":    {"the Job controller has not seen it yet", young, nil, with(func(s *job.State) { s.Since, s.Deadline = noon.Add(-time.Second), noon.Add(time.Hour-time.Second) })},
		"Creating": {"its pod starts", aJob(), []corev1.Pod{aPod("p", 0, corev1.PodPending, waits("ContainerCreating"))}, with(func(s *job.State) { s.HasPod = true })},
		"Image": {"its pod cannot start", aJob(), []corev1.Pod{aPod("p", 0, corev1.PodPending, waits("ErrImagePull"))},
			with(func(s *job.State) {
				s.HasPod, s.Reason, s.Detail = true, "ImagePullBackOff", `pod p: image "i:1" cannot be pulled`
			})},
		"Running": {"its pod runs", aJob(), []corev1.Pod{aPod("p", 0, corev1.PodRunning, runs)}, with(func(s *job.State) { s.HasPod, s.Phase = true, job.PhaseRunning })},
		"Between": {"the next pod is not there yet", aJob(), []corev1.Pod{aPod("p", 0, corev1.PodFailed, ended("line 1\nno disk\n"))},
			with(func(s *job.State) {
				s.Phase, s.Detail, s.LastWords = job.PhaseRunning, "a pod failed and is replaced", "no disk"
			})},
		"Retried": {"the youngest pod counts", aJob(), []corev1.Pod{aPod("a", 9, corev1.PodRunning, runs), aPod("p", 0, corev1.PodFailed, ended("no disk"))},
			with(func(s *job.State) { s.HasPod, s.Phase, s.LastWords = true, job.PhaseRunning, "no disk" })},
		"Ending":    {"its pod is done, and Kubernetes has not counted it", aJob(), []corev1.Pod{aPod("p", 0, corev1.PodSucceeded, corev1.ContainerState{})}, with(func(s *job.State) { s.Phase = job.PhaseRunning })},
		"Succeeded": {"Kubernetes has counted it", aJob(condition(batchv1.JobComplete, "", "")), nil, with(func(s *job.State) { s.Phase = job.PhaseSucceeded })},
		"Failed": {"the last retry has failed", aJob(condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached it.")), []corev1.Pod{aPod("p", 0, corev1.PodFailed, ended("no disk"))},
			with(func(s *job.State) {
				s.Phase, s.Reason, s.Detail, s.LastWords = job.PhaseFailed, "BackoffLimitExceeded", "Job has reached it", "no disk"
			})},
		"Failing": {"its pods are still being ended", aJob(condition(batchv1.JobFailureTarget, "x", "y")), []corev1.Pod{aPod("p", 0, corev1.PodRunning, runs)}, with(func(s *job.State) { s.HasPod, s.Phase = true, job.PhaseRunning })},
		"Suspended": {"it has no deadline while a queue holds it", suspended, nil, with(func(s *job.State) {
			s.Deadline, s.Reason, s.Detail = time.Time{}, job.ReasonSuspended, "it is suspended"
		})},
		"Foreign":  {"a pod of an earlier Job of the name", aJob(), []corev1.Pod{foreign}, base},
		"Deleting": {"it is being deleted", leaving, nil, with(func(s *job.State) { s.Phase, s.Deleting = job.PhaseSucceeded, true })},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, observe.JobState(c.job, c.pods)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func event(name, message string, after int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Reason: "FailedCreate", Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: "b", UID: "j"}, LastTimestamp: metav1.NewTime(noon.Add(time.Duration(after) * time.Second)),
	}
}

func reader(objects ...client.Object) client.Reader {
	byField := func(get func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{get(o.(*corev1.Event))} }
	}
	return fake.NewClientBuilder().WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.kind", byField(func(e *corev1.Event) string { return e.InvolvedObject.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name", byField(func(e *corev1.Event) string { return e.InvolvedObject.Name })).
		WithIndex(&corev1.Event{}, "reason", byField(func(e *corev1.Event) string { return e.Reason })).Build()
}

// A Job whose pod the API server refuses says why, without the pod's name, and not for an earlier pod.
func TestRefusedPodsOfJobAreReported(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "o", UID: "o"}}
	quota := event("e", `Error creating: pods "b-x7" is forbidden: exceeded quota: q, limited: pods=0`, 60)
	ran := aPod("p", 90, corev1.PodFailed, ended("no disk"))
	cases := map[string]struct {
		reason string
		more   []client.Object
		want   [2]string
	}{
		"None":      {"nothing is known", nil, [2]string{}},
		"Quota":     {"a quota refuses it", []client.Object{quota}, [2]string{job.ReasonQuotaExceeded, "exceeded quota: q, limited: pods=0"}},
		"Admission": {"another one refuses it", []client.Object{event("e", `Error creating: admission webhook "w" denied the request: no`, 60)}, [2]string{job.ReasonPodsRefused, `admission webhook "w" denied the request: no`}},
		"Passed":    {"a pod was created after it", []client.Object{quota, &ran}, [2]string{"", "a pod failed and is replaced"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := aJob()
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "o", Controller: new(true)}}
			r := reader(append(c.more, j)...)
			s, err := observe.Job(t.Context(), r, r, owner, "b", noon.Add(2*time.Minute))
			if err != nil || [2]string{s.Reason, s.Detail} != c.want {
				t.Errorf("%s: got %q %q, %v", c.reason, s.Reason, s.Detail, err)
			}
		})
	}
}

func TestJobOfAnotherOwnerIsAbsent(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "o", UID: "o"}}
	for name, r := range map[string]client.Reader{"none": reader(), "of another": reader(aJob())} {
		if s, err := observe.Job(t.Context(), r, r, owner, "b", noon); err != nil || s != (job.State{}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
