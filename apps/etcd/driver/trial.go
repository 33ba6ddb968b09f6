package driver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/pod"
	"github.com/governor-dev/governor/lifecycle"
)

// refusedTrials are trials whose pod the API server rejected, by cluster. They are not tried again
// until the operator restarts or the template changes.
type refusedTrials struct {
	mu  sync.Mutex
	all map[types.UID]etcd.Trial
}

func newRefusedTrials() *refusedTrials { return &refusedTrials{all: map[types.UID]etcd.Trial{}} }

func (r *refusedTrials) of(cluster types.UID) etcd.Trial {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[cluster]
}

func (r *refusedTrials) record(cluster types.UID, t etcd.Trial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Template == "" {
		delete(r.all, cluster)
		return
	}
	r.all[cluster] = t
}

// trial is the state of the trial pod, or of the one that the API server rejected.
func (d *Driver) trial(want *etcdv1.EtcdCluster, found *corev1.Pod) etcd.Trial {
	if found == nil || !alive(found) {
		t := d.refusedTrials.of(want.UID)
		t.Possible = true
		return t
	}
	t := trialOf(found)
	t.Possible, t.Template, t.Since = true, found.Annotations[etcd.AnnotationTemplate], found.CreationTimestamp.Time
	if c := scheduling(found); c != nil && c.Status == corev1.ConditionTrue {
		t.Since = c.LastTransitionTime.Time
	}
	return t
}

// scheduling is the scheduler's condition; nil if there is none yet.
func scheduling(found *corev1.Pod) *corev1.PodCondition {
	at := slices.IndexFunc(found.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if at < 0 {
		return nil
	}
	return &found.Status.Conditions[at]
}

// trialOf reads what the pod shows. A container that was added to it may run on.
func trialOf(found *corev1.Pod) etcd.Trial {
	for _, c := range found.Status.ContainerStatuses {
		if ended := c.State.Terminated; c.Name == etcd.Name && ended != nil && ended.Reason != "ContainerStatusUnknown" {
			return trialResult(ended)
		}
	}
	s := pod.Of(found, etcd.Name)
	c := scheduling(found)
	switch {
	case s.Finished:
		return etcd.Trial{Unknown: strings.TrimSuffix(fmt.Sprintf("the trial pod did not run: %s %s", found.Status.Reason, found.Status.Message), ".")}
	case c != nil && c.Reason == corev1.PodReasonUnschedulable: // and not because a controller gates such pods
		return etcd.Trial{Unscheduled: strings.TrimSuffix(c.Message, ".")}
	case s.Container == "" && (s.Problem == lifecycle.PodProblemImagePullBackOff || s.Problem == lifecycle.PodProblemContainerCannotStart):
		return etcd.Trial{Problem: s.Problem, Detail: s.Detail}
	}
	return etcd.Trial{}
}

// trialResult is what the end of etcd shows. A signal is no answer of etcd.
func trialResult(ended *corev1.ContainerStateTerminated) etcd.Trial {
	switch {
	case ended.ExitCode == 0:
		return etcd.Trial{Passed: true}
	case ended.Signal != 0 || ended.ExitCode > 128 || ended.Reason == "OOMKilled":
		return etcd.Trial{Unknown: fmt.Sprintf("etcd --version was stopped (%s, exit code %d)", ended.Reason, ended.ExitCode)}
	}
	said, _, _ := strings.Cut(strings.TrimSpace(ended.Message), "\n")
	return etcd.Trial{Problem: lifecycle.PodProblemCrashLoopBackOff, Detail: fmt.Sprintf("etcd --version ends with the exit code %d: %s", ended.ExitCode, strings.TrimSuffix(said, "."))}
}

// findTrial returns the trial pod of exactly this cluster.
func findTrial(want *etcdv1.EtcdCluster, pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		if pods[i].Name == etcd.TrialName(want) && metav1.IsControlledBy(&pods[i], want) {
			return &pods[i]
		}
	}
	return nil
}

// startTrial creates the trial pod. If the API server rejects it, the first member is not tried
// beforehand: a policy against such pods must not hold changes forever.
func (d *Driver) startTrial(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	if old := v.parts.trial; old != nil {
		return d.awaitEarlierTrial(want, old, s)
	}
	trial, err := etcd.TrialPod(want, v.world, s)
	if err != nil {
		return err
	}
	if err := d.placeTrial(ctx, trial, v.parts.pods[s.Target], v.parts.claims[s.Target]); err != nil {
		return err
	}
	trial.Namespace, trial.OwnerReferences = want.Namespace, []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)}
	err = d.client.Create(ctx, trial)
	if apierrors.IsAlreadyExists(err) && d.ownsTrial(ctx, want) {
		return errTrialExists
	}
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		d.refusedTrials.record(want.UID, etcd.Trial{})
		return nil
	case errors.As(err, &answer) && refusesForGood(answer.Status().Code):
		why := strings.TrimSuffix(err.Error(), ".")
		d.refusedTrials.record(want.UID, etcd.Trial{Template: etcd.TemplateOf(s), Unknown: why})
		return nil
	}
	return fmt.Errorf("cannot create the trial pod %s: %w", trial.Name, err)
}

// awaitEarlierTrial defers the trial until the earlier pod is gone. A pod that stays, because its node is
// gone or another controller has a finalizer on it, must not hold changes forever.
func (d *Driver) awaitEarlierTrial(want *etcdv1.EtcdCluster, old *corev1.Pod, s lifecycle.Step) error {
	if alive(old) || d.now().Before(old.DeletionTimestamp.Add(etcd.TrialTime)) {
		return errTrialExists
	}
	why := fmt.Sprintf("the pod %s of an earlier trial has been deleted for %s and still exists", old.Name, etcd.TrialTime)
	d.refusedTrials.record(want.UID, etcd.Trial{Template: etcd.TemplateOf(s), Unknown: why})
	return nil
}

// errTrialExists defers a trial until the pod of an earlier one is gone.
var errTrialExists = &lifecycle.Deferred{Reason: "an earlier trial pod still exists"}

// ownsTrial reports whether a trial pod that the cache does not show is the cluster's own.
func (d *Driver) ownsTrial(ctx context.Context, want *etcdv1.EtcdCluster) bool {
	other := &corev1.Pod{}
	found, err := d.find(ctx, want, etcd.TrialName(want), other)
	return err != nil || !found || metav1.IsControlledBy(other, want)
}

// refusesForGood reports that the same request would be refused again. That counts also if another
// pod has the name.
func refusesForGood(code int32) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// deleteTrial deletes the trial pod, and forgets one that was rejected.
func (d *Driver) deleteTrial(ctx context.Context, want *etcdv1.EtcdCluster, p parts) error {
	d.refusedTrials.record(want.UID, etcd.Trial{})
	if p.trial == nil {
		return nil
	}
	return d.remove(ctx, p.trial)
}
