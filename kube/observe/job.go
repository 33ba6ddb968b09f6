package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/pod"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/job"
)

// longestWords is how much of the last words is kept, in bytes.
const longestWords = 200

// Job returns the state of the Job of that name of the object. The application must own or watch
// Jobs, and watch Pods. live reads events, with which the API server says why a Job has no pod;
// the operator needs the right to list them. An error means that nothing is known.
func Job(ctx context.Context, cached, live client.Reader, x client.Object, name string, now time.Time) (job.State, error) {
	j := &batchv1.Job{}
	switch err := cached.Get(ctx, client.ObjectKey{Namespace: x.GetNamespace(), Name: name}, j); {
	case apierrors.IsNotFound(err):
		return job.State{}, nil
	case err != nil:
		return job.State{}, fmt.Errorf("cannot read the Job: %w", err)
	case !metav1.IsControlledBy(j, x):
		return job.State{}, nil // the step that creates the Job reports whose it is
	}
	var pods corev1.PodList
	if err := cached.List(ctx, &pods, client.InNamespace(x.GetNamespace()), client.MatchingLabels{batchv1.JobNameLabel: name}); err != nil {
		return job.State{}, fmt.Errorf("cannot list the pods of the Job: %w", err)
	}
	s := JobState(j, pods.Items)
	if s.Phase.Ended() || s.HasPod || s.Reason != "" || now.Sub(s.Since) < pod.RefusedAfter {
		return s, nil
	}
	since := latest(j, pods.Items, now.Add(-pod.EventWithin))
	if reason, detail := refused(pod.Refused(ctx, live, "Job", j, since)); reason != "" {
		s.Phase, s.Reason, s.Detail = job.PhasePending, reason, detail
	}
	return s, nil
}

// latest is when the last pod of the Job was created, or the given time if that is later.
func latest(j *batchv1.Job, pods []corev1.Pod, at time.Time) time.Time {
	for _, p := range pods {
		if created := p.CreationTimestamp.Time; metav1.IsControlledBy(&p, j) && created.After(at) {
			at = created
		}
	}
	return at
}

// refused is the reason for which the API server refuses pods, without the name of the pod, which
// differs at each attempt.
func refused(message string) (reason, detail string) {
	for _, before := range []string{"is forbidden: ", "is invalid: "} {
		if _, said, ok := strings.Cut(message, before); ok {
			message = said
		}
	}
	switch {
	case message == "":
		return "", ""
	case strings.Contains(message, "exceeded quota"):
		return job.ReasonQuotaExceeded, message
	}
	return job.ReasonPodsRefused, message
}

// JobState returns the state of the Job, of which pods are all that there are of that name.
func JobState(j *batchv1.Job, pods []corev1.Pod) job.State {
	s := job.State{Name: j.Name, Phase: job.PhasePending, Deleting: j.DeletionTimestamp != nil, Since: j.CreationTimestamp.Time}
	if j.Status.StartTime != nil {
		s.Since = j.Status.StartTime.Time
	}
	if limit := j.Spec.ActiveDeadlineSeconds; limit != nil {
		s.Deadline = s.Since.Add(time.Duration(*limit) * time.Second)
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		s.Reason, s.Detail, s.Deadline = job.ReasonSuspended, "it is suspended", time.Time{}
	}
	addPods(&s, j, pods)
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			s.Phase, s.Reason, s.Detail = job.PhaseSucceeded, "", ""
		case c.Type == batchv1.JobFailed:
			s.Phase, s.Reason, s.Detail = job.PhaseFailed, c.Reason, strings.TrimSuffix(c.Message, ".")
		}
	}
	return s
}

// addPods adds what the youngest pod does, and the last words of the last one that ended.
func addPods(s *job.State, j *batchv1.Job, pods []corev1.Pod) {
	own := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, j) })
	slices.SortFunc(own, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var main []string
	for _, c := range j.Spec.Template.Spec.Containers {
		main = append(main, c.Name)
	}
	for i := range own {
		p := pod.Of(&own[i], main...)
		if words := lastLine(p.LastTerminationMessage); p.Finished && words != "" {
			s.LastWords = words
		}
		if s.HasPod = !p.Finished; s.Reason != job.ReasonSuspended {
			s.Phase, s.Reason, s.Detail = phase(&own[i], p)
		}
	}
}

// phase is what a pod says of its Job, while Kubernetes says nothing of the Job itself.
func phase(p *corev1.Pod, s pod.State) (of job.Phase, reason, detail string) {
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return job.PhaseRunning, "", "a pod failed and is replaced"
	case s.Ready || s.Running || s.Finished:
		return job.PhaseRunning, "", ""
	case s.Problem != lifecycle.PodProblemNone:
		return job.PhasePending, string(s.Problem), fmt.Sprintf("pod %s: %s", p.Name, s.Detail)
	}
	return job.PhasePending, "", ""
}

// lastLine is the last line of the message that is not empty.
func lastLine(message string) string {
	message = strings.TrimSpace(message)
	if i := strings.LastIndexByte(message, '\n'); i >= 0 {
		message = message[i+1:]
	}
	return strings.ToValidUTF8(message[:min(len(message), longestWords)], "")
}
