package memcached

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// schedulingGrace is how long a pod may look for a node before it counts as
// hindered: an autoscaler needs a while to bring one.
const schedulingGrace = 30 * time.Second

// Next is the runbook: what hinders the instance, the surest cause first.
func (Planner) Next(want *cachev1.Memcached, seen World, now time.Time) lifecycle.Decision {
	return lifecycle.First(
		unnoticed(want, seen),    // what is known is about an earlier spec
		podsRefused(seen),        // the API server lets no pod be created
		imageUnpullable(seen),    // a name, a registry or a credential is wrong
		containerMisfit(seen),    // the node cannot start the container
		crashLooping(seen),       // memcached starts and ends
		unschedulable(seen, now), // no node takes the pod
		rolloutStuck(seen),       // Kubernetes itself has given up waiting
		rollingOut(want, seen),   // otherwise it only takes time
		everythingAnswers(want),
	)
}

func unnoticed(want *cachev1.Memcached, seen World) lifecycle.Decision {
	if takenUp(want, seen) {
		return lifecycle.Decision{}
	}
	return rollingOut(want, seen)
}

// takenUp says that Kubernetes works on what is declared now.
func takenUp(want *cachev1.Memcached, seen World) bool {
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
		"Correct spec.image or spec.version, or give spec.pod.imagePullSecrets; the pull is tried again by itself.")
}

func containerMisfit(seen World) lifecycle.Decision {
	return blockedBy(seen, lifecycle.PodProblemContainerCannotStart, "Correct spec.image, spec.resources or the node.")
}

func crashLooping(seen World) lifecycle.Decision {
	return blockedBy(seen, lifecycle.PodProblemCrashLoopBackOff, "See what it says with: kubectl logs --previous, and correct the spec.")
}

func blockedBy(seen World, t lifecycle.PodProblem, remedy string) lifecycle.Decision {
	p, ok := seen.inTrouble(t)
	if !ok {
		return lifecycle.Decision{}
	}
	return verdict(p.New && t != lifecycle.PodProblemUnschedulable, string(t), fmt.Sprintf("Pod %s: %s. %s", p.Name, p.Detail, remedy))
}

// verdict tells a change that has failed from a fault: while pods of an earlier spec are
// there, what hinders one of the present spec came with it.
func verdict(changed bool, reason, message string) lifecycle.Decision {
	if changed {
		return lifecycle.Fail(reason, message)
	}
	return lifecycle.Block(reason, message)
}

func unschedulable(seen World, now time.Time) lifecycle.Decision {
	p, ok := seen.inTrouble(lifecycle.PodProblemUnschedulable)
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
	if p.New && seen.Rollout.Stuck {
		return lifecycle.Decision{} // the change had its time
	}
	return blockedBy(seen, lifecycle.PodProblemUnschedulable, "Add nodes, or change spec.memory, spec.resources or spec.pod.nodeSelector.")
}

func rolloutStuck(seen World) lifecycle.Decision {
	if !seen.Rollout.Stuck {
		return lifecycle.Decision{}
	}
	return verdict(seen.renewing(), "RolloutStuck",
		"The pods have not become ready within the Deployment's deadline. Look at their events and logs.")
}

func rollingOut(want *cachev1.Memcached, seen World) lifecycle.Decision {
	size := want.Spec.Size
	awaited := rolloutAwaits(want, seen)
	if awaited == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.WaitFor(lifecycle.Step{
		Name: rolledOut, Target: want.Name, Reason: "RollingOut",
		Message: fmt.Sprintf("%d of %d servers answer; waiting for %s.", seen.answering(), size, awaited),
		Args:    map[string]string{"size": strconv.Itoa(int(size))},
	}, time.Time{})
}

// rolloutAwaits names what a rollout still lacks, or nothing once it is complete.
func rolloutAwaits(want *cachev1.Memcached, seen World) string {
	size, r, present := want.Spec.Size, seen.Rollout, max(seen.Rollout.Total, seen.staying())
	switch {
	case !takenUp(want, seen):
		return "Kubernetes to take up the latest change of the Deployment"
	case r.Updated < size:
		return fmt.Sprintf("new pods, %d of %d are still to come", size-r.Updated, size)
	case seen.answering() < size:
		return "the others to be ready"
	case present > size:
		return fmt.Sprintf("pods to go, %d too many are there", present-size)
	case r.Updated != size || r.Total != size:
		return "Kubernetes to count the pods"
	}
	return ""
}

func everythingAnswers(want *cachev1.Memcached) lifecycle.Decision {
	if want.Spec.Size == 0 {
		return lifecycle.Settled("ScaledToZero", "No server is wanted; set spec.size to have some.")
	}
	return lifecycle.Settled("AllAnswer", fmt.Sprintf("All %d servers answer.", want.Spec.Size))
}
