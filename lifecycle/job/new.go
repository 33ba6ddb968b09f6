package job

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// Options are how a Job runs.
type Options struct {
	// Retries is how often a pod that failed is replaced. A pod that a drained node evicted does
	// not count.
	Retries int32
	// Deadline is the time for all attempts together; zero means no limit. Kubernetes then ends
	// the pod and fails the Job.
	Deadline time.Duration
	// TTL is how long Kubernetes keeps the Job after its end; zero keeps it as long as its owner.
	// The result is gone with the Job: choose a time in which an operator that was away comes
	// back, and keep what must survive elsewhere.
	TTL time.Duration
}

// New returns a Job of one pod at a time for the instance of the application. A step applies it
// with apply.Object, which makes the instance its owner.
func New(app, instance, name string, pod corev1.PodSpec, o Options) *batchv1.Job {
	labels := map[string]string{lifecycle.LabelApp: app, lifecycle.LabelInstance: instance}
	spec := batchv1.JobSpec{
		BackoffLimit: &o.Retries, PodReplacementPolicy: new(batchv1.Failed), // never two pods at once
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			}},
		}}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: oncePerPod(pod)},
	}
	if o.Deadline > 0 {
		spec.ActiveDeadlineSeconds = new(seconds(o.Deadline))
	}
	if o.TTL > 0 {
		spec.TTLSecondsAfterFinished = new(int32(seconds(o.TTL)))
	}
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: spec}
}

// seconds rounds up: zero would end a Job at once.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// oncePerPod leaves retries to the Job, and makes the last log of a failure its last words.
func oncePerPod(pod corev1.PodSpec) corev1.PodSpec {
	pod = *pod.DeepCopy()
	pod.RestartPolicy = corev1.RestartPolicyNever
	for i := range pod.Containers {
		if pod.Containers[i].TerminationMessagePolicy == "" {
			pod.Containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
	return pod
}

// maxName is the longest name of a Job: its pods have it as a label.
const maxName = 63

// Name returns the prefix with a digest of the inputs, such as the spec of the work and the
// number of the attempt. Equal inputs give the same name. A long prefix is cut: the name is
// unique all the same.
func Name(prefix string, inputs ...any) string {
	digest := lifecycle.Digest(append([]any{prefix}, inputs...))
	if most := maxName - len(digest) - 1; len(prefix) > most {
		prefix = strings.TrimRight(prefix[:most], "-.")
	}
	return prefix + "-" + digest
}
