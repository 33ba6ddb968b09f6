package memcached

import (
	"fmt"
	"strings"
	"time"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// schedulingGrace is how long a pod may stay unschedulable before the instance is blocked:
// an autoscaler needs time to add a node.
const schedulingGrace = 30 * time.Second

// Next lists the problems of the instance, the most specific cause first.
func (Planner) Next(want *cachev1.Memcached, seen World, now time.Time) lifecycle.Decision {
	return lifecycle.First(
		specNotObserved(want, seen), // the status is about an earlier spec
		podsRefused(seen),           // the API server rejects new pods
		imageUnpullable(seen),       // the image name, the registry or a credential is wrong
		containerCannotStart(seen),  // the node cannot start the container
		crashLooping(seen),          // memcached exits repeatedly
		unschedulable(seen, now),    // no node accepts the pod
		rolloutStuck(seen),          // the Deployment's progress deadline has passed
		rollingOut(want, seen),      // otherwise the rollout is in progress
		allReady(want),
	)
}

func specNotObserved(want *cachev1.Memcached, seen World) lifecycle.Decision {
	if specObserved(want, seen) {
		return lifecycle.Decision{}
	}
	return rollingOut(want, seen)
}

// specObserved reports whether the Deployment controller has observed the present spec.
func specObserved(want *cachev1.Memcached, seen World) bool {
	r := seen.Rollout
	return r.Current && (r.Template == "" || r.Template == Template(want))
}

func podsRefused(seen World) lifecycle.Decision {
	switch refused := seen.Rollout.Refused; {
	case refused == "":
		return lifecycle.Decision{}
	case strings.Contains(refused, "exceeded quota"):
		return lifecycle.Block("QuotaExceeded", fmt.Sprintf(
			"Pods cannot be created: %s. Raise the quota, or lower spec.size or spec.memory.", refused))
	default:
		return lifecycle.Block("PodsRefused", fmt.Sprintf(
			"Pods cannot be created: %s. Change the policy that refuses them, or the spec.", refused))
	}
}

func imageUnpullable(seen World) lifecycle.Decision {
	return blockedBy(seen, lifecycle.PodProblemImagePullBackOff,
		"Correct spec.image or spec.version, or give spec.pod.imagePullSecrets; Kubernetes retries the pull.")
}

func containerCannotStart(seen World) lifecycle.Decision {
	return blockedBy(seen, lifecycle.PodProblemContainerCannotStart, "Correct spec.image, spec.resources or the node.")
}

func crashLooping(seen World) lifecycle.Decision {
	return blockedBy(seen, lifecycle.PodProblemCrashLoopBackOff, "Read its logs with kubectl logs --previous, and correct the spec.")
}

func blockedBy(seen World, t lifecycle.PodProblem, remedy string) lifecycle.Decision {
	p, ok := seen.withProblem(t)
	if !ok {
		return lifecycle.Decision{}
	}
	return failOrBlock(p.Updated && t != lifecycle.PodProblemUnschedulable, string(t), fmt.Sprintf("Pod %s: %s. %s", p.Name, p.Detail, remedy))
}

// failOrBlock returns a failed change if pods of two templates exist, and a block otherwise.
// While pods of an earlier spec exist, a problem of a new pod comes from the change.
func failOrBlock(changed bool, reason, message string) lifecycle.Decision {
	if changed {
		return lifecycle.Fail(reason, message)
	}
	return lifecycle.Block(reason, message)
}

func unschedulable(seen World, now time.Time) lifecycle.Decision {
	p, ok := seen.withProblem(lifecycle.PodProblemUnschedulable)
	if !ok {
		return lifecycle.Decision{}
	}
	deadline := p.Since.Add(schedulingGrace)
	if now.Before(deadline) {
		return lifecycle.WaitFor(lifecycle.Step{
			Name: nodeFound, Target: p.Name, Reason: "Scheduling",
			Message: fmt.Sprintf("Pod %s: %s.", p.Name, p.Detail),
		}, p.Since).Until(deadline)
	}
	if p.Updated && seen.Rollout.Stuck {
		return lifecycle.Decision{} // rolloutStuck reports the failed change
	}
	return blockedBy(seen, lifecycle.PodProblemUnschedulable, "Add nodes, or change spec.memory, spec.resources or spec.pod.nodeSelector.")
}

func rolloutStuck(seen World) lifecycle.Decision {
	if !seen.Rollout.Stuck {
		return lifecycle.Decision{}
	}
	return failOrBlock(seen.mixedTemplates(), "RolloutStuck",
		"The pods have not become ready within the Deployment's deadline. Look at their events and logs.")
}

func rollingOut(want *cachev1.Memcached, seen World) lifecycle.Decision {
	size := want.Spec.Size
	awaited := rolloutLacks(want, seen)
	if awaited == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.WaitFor(lifecycle.Step{
		Name: rolledOut, Target: want.Name, Reason: "RollingOut",
		Message: fmt.Sprintf("%d of %d servers answer; waiting for %s.", seen.ready(), size, awaited),
	}, time.Time{})
}

// rolloutLacks returns what the rollout still lacks, or "" when it is complete.
func rolloutLacks(want *cachev1.Memcached, seen World) string {
	size, r, present := want.Spec.Size, seen.Rollout, max(seen.Rollout.Total, seen.remaining())
	switch {
	case !specObserved(want, seen):
		return "the Deployment controller to observe the latest change"
	case r.Updated < size:
		return fmt.Sprintf("%d of %d new pods", size-r.Updated, size)
	case seen.ready() < size:
		return "the other pods to become ready"
	case present > size:
		return fmt.Sprintf("%d excess pods to terminate", present-size)
	case r.Updated != size || r.Total != size:
		return "the Deployment controller to count the pods"
	}
	return ""
}

func allReady(want *cachev1.Memcached) lifecycle.Decision {
	if want.Spec.Size == 0 {
		return lifecycle.Settled("ScaledToZero", "spec.size is 0. Set spec.size to run servers.")
	}
	return lifecycle.Settled("AllAnswer", fmt.Sprintf("All %d servers answer.", want.Spec.Size))
}
