package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/job"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	start = lifecycle.Step{Name: "BackUp", Target: "b", Reason: "NoBackup", Message: "There is no backup."}
)

func TestRun(t *testing.T) {
	running := job.State{Name: "b", Phase: job.PhaseRunning, HasPod: true, Since: noon}
	pending := job.State{Name: "b", Phase: job.PhasePending, Since: noon}
	with := func(s job.State, edit func(*job.State)) job.State { edit(&s); return s }
	because := func(reason, detail string) job.State {
		return with(pending, func(s *job.State) { s.Reason, s.Detail = reason, detail })
	}
	limited := with(running, func(s *job.State) { s.Deadline = noon.Add(-time.Second) })
	cases := map[string]struct {
		reason  string
		state   job.State
		outcome lifecycle.Outcome
		want    string
		says    string
	}{
		"Absent":        {"it is started", job.State{}, lifecycle.OutcomeProceed, "NoBackup", ""},
		"Succeeded":     {"the work is done", job.State{Name: "b", Phase: job.PhaseSucceeded}, lifecycle.OutcomeNone, "", ""},
		"Running":       {"it takes its time", running, lifecycle.OutcomeWait, "JobRunning", "The Job b is running."},
		"Retried":       {"Kubernetes retries", with(running, func(s *job.State) { s.Detail, s.LastWords = "a pod failed and is replaced", "no disk" }), lifecycle.OutcomeWait, "JobRunning", `The Job b is running: a pod failed and is replaced; a pod ended with "no disk".`},
		"Pending":       {"it begins soon", pending, lifecycle.OutcomeWait, "JobPending", "The Job b has not begun."},
		"Unschedulable": {"a cluster may grow", because("Unschedulable", "no node"), lifecycle.OutcomeWait, "JobPending", "no node"},
		"Suspended":     {"a queue lets it go on", because(job.ReasonSuspended, "it is suspended"), lifecycle.OutcomeWait, "JobPending", "it is suspended"},
		"Image":         {"the name must be corrected", because("ImagePullBackOff", "no such image"), lifecycle.OutcomeBlocked, "ImagePullBackOff", "no such image. Correct it."},
		"Quota":         {"a quota must be raised", because(job.ReasonQuotaExceeded, "exceeded quota: q"), lifecycle.OutcomeBlocked, job.ReasonQuotaExceeded, "exceeded quota: q. Correct it."},
		"Refused":       {"a policy must be changed", because(job.ReasonPodsRefused, "no"), lifecycle.OutcomeBlocked, job.ReasonPodsRefused, "cannot start a pod: no."},
		"Failed":        {"nothing retries it", job.State{Name: "b", Phase: job.PhaseFailed, Reason: "BackoffLimitExceeded", Detail: "Job has reached the specified backoff limit", LastWords: "no disk"}, lifecycle.OutcomeBlocked, "JobFailed", `backoff limit; a pod ended with "no disk". Correct it. Delete the Job`},
		"Deadline":      {"a deadline is a failure", job.State{Name: "b", Phase: job.PhaseFailed, Reason: job.ReasonDeadlineExceeded}, lifecycle.OutcomeBlocked, "JobFailed", "failed: DeadlineExceeded."},
		"Silent":        {"a failure without a reason", job.State{Name: "b", Phase: job.PhaseFailed}, lifecycle.OutcomeBlocked, "JobFailed", "Kubernetes gives no reason"},
		"Late":          {"Kubernetes gets time to end it", limited, lifecycle.OutcomeWait, "JobRunning", ""},
		"Overdue":       {"Kubernetes does not end it", with(limited, func(s *job.State) { s.Deadline = noon.Add(-time.Minute) }), lifecycle.OutcomeBlocked, "JobOverdue", "kube-controller-manager"},
		"Other":         {"the Job of other inputs is not this one", job.State{Name: "a", Phase: job.PhaseSucceeded}, lifecycle.OutcomeProceed, "NoBackup", ""},
		"Deleting":      {"its result does not count", with(running, func(s *job.State) { s.Phase, s.Deleting = job.PhaseSucceeded, true }), lifecycle.OutcomeWait, "JobDeleting", "being deleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := c.state.Run(start, "Correct it.", noon)
			if d.Outcome != c.outcome || d.Reason != c.want || !strings.Contains(d.Message, c.says) {
				t.Errorf("%s: got %s", c.reason, d)
			}
			if d.Outcome == lifecycle.OutcomeWait && d.Step.Target != "b" {
				t.Errorf("it waits for %s", d.Step)
			}
		})
	}
}

// Nothing reports a pod that the API server refuses, so a Job without a pod is observed again.
func TestJobWithoutPodIsObservedAgain(t *testing.T) {
	for _, phase := range []job.Phase{job.PhasePending, job.PhaseRunning} {
		without, with := job.State{Name: "b", Phase: phase}, job.State{Name: "b", Phase: phase, HasPod: true}
		if d := without.Run(start, "", noon); d.After == 0 {
			t.Errorf("%s without a pod: no reconcile follows %s", phase, d)
		}
		if d := with.Run(start, "", noon); d.After != 0 {
			t.Errorf("%s with a pod: a watch reports it, and it is observed after %s", phase, d.After)
		}
	}
}

// From every state the waits end where the rule is not set.
func TestWaitsEnd(t *testing.T) {
	for _, s := range []job.State{
		{Name: "b", Phase: job.PhasePending}, {Name: "b", Phase: job.PhaseRunning, HasPod: true}, {Name: "b", Phase: job.PhaseFailed, Deleting: true},
	} {
		for turns := 0; ; turns++ {
			d := s.Run(start, "", noon)
			if !d.IsSet() {
				break
			}
			before := s
			if s = s.After(d.Step); d.Outcome == lifecycle.OutcomeProceed {
				s = job.Started(d.Step.Target)
			}
			if turns > 4 || s == before {
				t.Fatalf("after %s it is %+v", d, s)
			}
		}
	}
	other := job.State{Name: "other", Phase: job.PhaseRunning}
	if diff := cmp.Diff(other, other.After(lifecycle.Step{Name: job.Finished, Target: "b"})); diff != "" {
		t.Errorf("the end of another Job: %s", diff)
	}
	if s := (job.State{}).After(lifecycle.Step{Name: job.Finished}); s != (job.State{}) {
		t.Errorf("a Job that does not exist ends as %+v", s)
	}
}

func TestName(t *testing.T) {
	long := strings.Repeat("very-long-", 10)
	names := map[string]bool{}
	for _, n := range []string{
		job.Name("a-backup", 1), job.Name("a-backup", 2), job.Name("a-backup"), job.Name("a", "backup"), job.Name(long+"a", 1), job.Name(long+"b", 1),
	} {
		if len(n) > 63 || strings.Contains(n, "--") || names[n] {
			t.Errorf("%s is too long, wrong or there twice", n)
		}
		names[n] = true
	}
	if job.Name("a", map[string]int{"x": 1, "y": 2}) != job.Name("a", map[string]int{"y": 2, "x": 1}) {
		t.Error("equal inputs have two names")
	}
}

func TestNew(t *testing.T) {
	given := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{
		{Name: "a"}, {Name: "b", TerminationMessagePolicy: corev1.TerminationMessageReadFile},
	}}
	j := job.New("app", "x", "x-backup", given, job.Options{Retries: 2, Deadline: 1500 * time.Millisecond, TTL: time.Hour})
	pod := j.Spec.Template.Spec
	if pod.RestartPolicy != corev1.RestartPolicyNever || pod.Containers[0].TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError ||
		pod.Containers[1].TerminationMessagePolicy != corev1.TerminationMessageReadFile || given.Containers[0].TerminationMessagePolicy != "" {
		t.Errorf("the pod is %+v, of %+v", pod, given)
	}
	if *j.Spec.BackoffLimit != 2 || *j.Spec.ActiveDeadlineSeconds != 2 || *j.Spec.TTLSecondsAfterFinished != 3600 || *j.Spec.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("the Job is %+v", j.Spec)
	}
	labels := map[string]string{lifecycle.LabelApp: "app", lifecycle.LabelInstance: "x"}
	if cmp.Diff(labels, j.Labels) != "" || cmp.Diff(labels, j.Spec.Template.Labels) != "" {
		t.Errorf("the labels are %v and %v", j.Labels, j.Spec.Template.Labels)
	}
	if free := job.New("app", "x", "n", given, job.Options{}).Spec; free.ActiveDeadlineSeconds != nil || free.TTLSecondsAfterFinished != nil {
		t.Errorf("without options it is %+v", free)
	}
}
