package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/observe"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
	"github.com/governor-dev/governor/lifecycle/job"
)

const taskApp = "task"

// taskWorld is the Job of the present spec, and the name of the last one whose success is in the
// status: that is what must outlive the Job.
type taskWorld struct {
	Job  job.State
	Done string
}

// taskPlanner runs spec.work once, as a Job.
type taskPlanner struct {
	lifecycle.NoConditions[*dynamic.Object, taskWorld]
}

func taskSteps() []lifecycle.StepType { return append(job.Steps(), lifecycle.StepType{Name: "Start"}) }

func jobOf(want *dynamic.Object) string {
	return job.Name(want.GetName(), want.Object["spec"])
}

func (taskPlanner) Resources(*dynamic.Object, taskWorld) ([]lifecycle.Object, error) { return nil, nil }

func (taskPlanner) Next(want *dynamic.Object, seen taskWorld, now time.Time) lifecycle.Decision {
	if seen.Done == jobOf(want) {
		return lifecycle.First()
	}
	return lifecycle.First(seen.Job.Run(lifecycle.Step{
		Name: "Start", Target: jobOf(want), Reason: "NotDone", Message: "The work is not done.",
	}, "Correct spec.work.", now))
}

func (taskPlanner) Effect(_ *dynamic.Object, seen taskWorld, s lifecycle.Step) (during, after taskWorld) {
	after = seen
	if after.Job = seen.Job.After(s); s.Name == "Start" {
		after.Job = job.Started(s.Target)
	}
	return seen, after
}

func (taskPlanner) Status(want *dynamic.Object, seen taskWorld) {
	done := seen.Done
	if seen.Job.Phase == job.PhaseSucceeded {
		done = seen.Job.Name
	}
	want.SetStatus(map[string]any{"done": done})
}

func taskDriver(seen *counts) func(kube.Access) lifecycle.Driver[*dynamic.Object, taskWorld] {
	return func(a kube.Access) lifecycle.Driver[*dynamic.Object, taskWorld] {
		return dynamicDriver[taskWorld]{
			counts: seen,
			observe: func(ctx context.Context, o *dynamic.Object) (w taskWorld, err error) {
				w.Done, _, _ = unstructured.NestedString(o.Object, "status", "done")
				w.Job, err = observe.Job(ctx, a.Client, a.Live, o, jobOf(o), a.Now())
				return w, err
			},
			act: func(ctx context.Context, o *dynamic.Object, s lifecycle.Step) error {
				pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "tool:1"}}}
				j := job.New(taskApp, o.GetName(), s.Target, pod, job.Options{Retries: 1, Deadline: time.Hour})
				return apply.Object(ctx, a.Client, a.Live, o, j)
			},
		}
	}
}

// playJob makes the Job controller, which the test plays, give the Job this status.
func playJob(t *testing.T, namespace, name string, status func(*batchv1.JobStatus)) {
	t.Helper()
	eventually(t, "the Job has a status", func() error {
		j, err := get(t, &batchv1.Job{}, namespace, name)
		if err != nil {
			return err
		}
		if j.Status.StartTime == nil {
			j.Status.StartTime = new(metav1.Now())
		}
		status(&j.Status)
		return api.Status().Update(t.Context(), j)
	})
}

func ended(kind, before batchv1.JobConditionType, reason, message string) func(*batchv1.JobStatus) {
	return func(s *batchv1.JobStatus) {
		for _, of := range []batchv1.JobConditionType{before, kind} {
			s.Conditions = append(s.Conditions, batchv1.JobCondition{
				Type: of, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
			})
		}
		s.Active, s.UncountedTerminatedPods = 0, nil
		if kind == batchv1.JobComplete {
			s.CompletionTime, s.Succeeded = new(metav1.Now()), 1
		} else {
			s.Failed = 1
		}
	}
}

// newJob waits for the only Job of the task that is not known yet.
func newJob(t *testing.T, namespace string, known ...string) (name string) {
	t.Helper()
	eventually(t, "a new Job", func() error {
		jobs := &batchv1.JobList{}
		if err := api.List(t.Context(), jobs, client.InNamespace(namespace), client.MatchingLabels{lifecycle.LabelApp: taskApp}); err != nil {
			return err
		}
		if len(jobs.Items) != len(known)+1 {
			return fmt.Errorf("there are %d Jobs", len(jobs.Items))
		}
		for _, j := range jobs.Items {
			if !strings.Contains(strings.Join(known, " "), j.Name) {
				name = j.Name
			}
		}
		return nil
	})
	return name
}

func taskSays(t *testing.T, o *dynamic.Object, want string) {
	t.Helper()
	if !strings.Contains(fmt.Sprint(o.Conditions), want) {
		t.Errorf("it does not say %q: %v", want, o.Conditions)
	}
}

// Long work runs as a Job: a step starts it, no worker waits for it, its failure says why, other
// inputs are another Job, and its success outlives it.
func TestWorkRunsAsAJob(t *testing.T) {
	namespace := newNamespace(t)
	op, kind, seen := startOperator(t, namespace), installDynamic(t, "Task"), newCounts()
	must(t, engine.Register(op.engine, engine.App[*dynamic.Object, taskWorld]{
		Name: taskApp, New: dynamic.New(kind), Planner: taskPlanner{}, Steps: taskSteps(), Driver: taskDriver(seen),
		Watches: []engine.Watch{{Object: &batchv1.Job{}}, {Object: &corev1.Pod{}}},
		Workers: 1, // one that waited would keep the other task from its turn
	}))
	t.Cleanup(func() { must(t, op.engine.Unregister(context.Background(), kind.GroupKind())) })

	newDynamic(t, kind, namespace, "a", map[string]any{"work": "wrong"})
	first := newJob(t, namespace)
	taskSays(t, dynamicReaches(t, kind, namespace, "a", "JobPending"), "has not begun")
	newDynamic(t, kind, namespace, "b", map[string]any{"work": "slow"})
	other := newJob(t, namespace, first)
	playJob(t, namespace, first, ended(batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"))
	taskSays(t, dynamicReaches(t, kind, namespace, "a", "JobFailed"), "Job has reached the specified backoff limit. Correct spec.work.")

	editDynamic(t, kind, namespace, "a", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, "right", "spec", "work"))
	})
	second := newJob(t, namespace, first, other)
	playJob(t, namespace, second, ended(batchv1.JobComplete, batchv1.JobSuccessCriteriaMet, "CompletionsReached", ""))
	o := dynamicReaches(t, kind, namespace, "a", "AsDeclared")
	if done, _, _ := unstructured.NestedString(o.Object, "status", "done"); done != second {
		t.Errorf("status.done is %q, the Job is %s", done, second)
	}
	observed := seen.of("Task", "a")
	must(t, api.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: second}}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	eventually(t, "the end of the Job is noticed", func() error {
		if seen.of("Task", "a") == observed {
			return errors.New("no observation")
		}
		return nil
	})
	dynamicReaches(t, kind, namespace, "a", "AsDeclared")
	if again := newJob(t, namespace, first); again != other {
		t.Errorf("the work runs again as %s", again)
	}
}

// The API server says only in events why a Job has no pod.
func TestRefusedJobIsReported(t *testing.T) {
	namespace := newNamespace(t)
	op, kind := startOperator(t, namespace), installDynamic(t, "Chore")
	must(t, engine.Register(op.engine, engine.App[*dynamic.Object, taskWorld]{
		Name: taskApp, New: dynamic.New(kind), Planner: taskPlanner{}, Steps: taskSteps(), Driver: taskDriver(newCounts()),
		Watches: []engine.Watch{{Object: &batchv1.Job{}}, {Object: &corev1.Pod{}}},
	}))
	t.Cleanup(func() { must(t, op.engine.Unregister(context.Background(), kind.GroupKind())) })
	newDynamic(t, kind, namespace, "a", map[string]any{"work": "w"})
	j, err := get(t, &batchv1.Job{}, namespace, newJob(t, namespace))
	must(t, err)
	must(t, api.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"}, Reason: "FailedCreate", Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, Name: j.Name, UID: j.UID},
		Message:        fmt.Sprintf(`Error creating: pods "%s-x" is forbidden: exceeded quota: small, limited: pods=0`, j.Name),
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}))
	taskSays(t, dynamicReaches(t, kind, namespace, "a", job.ReasonQuotaExceeded), "exceeded quota: small, limited: pods=0. Correct spec.work.")
}
