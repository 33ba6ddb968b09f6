package podset

import (
	"fmt"
	"time"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Next settles ownership first, then the number of pods, then their state.
func (Planner) Next(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	return lifecycle.First(
		strays(want, seen),             // pods without the set's labels are released
		orphans(want, seen),            // matching pods without a controller are adopted
		tooManyPods(want, seen),        // never more pods than declared
		refusedTemplate(want, seen),    // no pod is deleted if its replacement would be rejected
		finishedPods(want, seen, now),  // finished pods are replaced
		tooFewPods(want, seen, now),    // missing pods are created under free names
		outdatedPods(want, seen),       // unready pods first, then as many as may be unavailable
		podProblem(seen, now),          // a pod cannot run
		podsInBackoff(want, seen, now), // pods that finish repeatedly are in backoff
		startingPods(want, seen),       // otherwise pods are starting
		allAvailable(want),
	)
}

func strays(want *appv1.PodSet, seen World) lifecycle.Decision {
	all := seen.Strays()
	if len(all) == 0 {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(withReason(step(Release, want, Args{Pods: len(all)}), lifecycle.CauseDrift, "LabelsChanged",
		"Releasing %s: their labels no longer match this set.", nameList(all)))
}

func orphans(want *appv1.PodSet, seen World) lifecycle.Decision {
	all := seen.Orphans()
	if len(all) == 0 {
		return lifecycle.Decision{}
	}
	s := step(Adopt, want, Args{Pods: len(all), Template: Fingerprint(want)})
	return lifecycle.Proceed(withReason(s, lifecycle.CauseDrift, "LabelsMatch",
		"Adopting %s: their labels match this set and they have no controller.", nameList(all)))
}

func tooManyPods(want *appv1.PodSet, seen World) lifecycle.Decision {
	active := seen.active()
	n := min(active-int(want.Spec.Replicas), maxPodsPerStep)
	if n <= 0 {
		return lifecycle.Decision{}
	}
	s := step(DeletePods, want, Args{Pods: n})
	if want.Spec.Replicas == 0 && seen.available() > 0 {
		s.Class = lifecycle.ClassDisruptive // nothing serves after it
	}
	return lifecycle.Proceed(withReason(s, lifecycle.CauseSpecChange, "TooManyPods",
		"Deleting %s of %d, spec.replicas is %d: %s.", podCount(n), active, want.Spec.Replicas, nameList(PodsToDelete(seen.Actives(), n))))
}

// lacking returns how many pods may be created now. Finished pods in backoff keep their
// places.
func lacking(want *appv1.PodSet, seen World, now time.Time) int {
	return max(0, int(want.Spec.Replicas)-seen.active()-seen.count(inBackoff(now)))
}

func finishedPods(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	ended := seen.count((*Pod).finished)
	if seen.active() < int(want.Spec.Replicas) {
		ended -= seen.count(inBackoff(now)) // the others stay until they are replaced: they store the attempt
	}
	ended = min(ended, maxPodsPerStep)
	if ended == 0 {
		return lifecycle.Decision{}
	}
	n := min(ended, lacking(want, seen, now))
	s := step(ReplaceFinished, want, Args{Pods: n, Finished: ended, Template: Fingerprint(want)})
	return lifecycle.Proceed(withReason(s, lifecycle.CauseFault, "PodsEnded",
		"Removing %s that finished (%s) and creating %d in their place.", podCount(ended), nameList(Finished(seen, ended)), n))
}

func tooFewPods(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	n := min(lacking(want, seen, now), maxPodsPerStep)
	if n == 0 {
		return lifecycle.Decision{}
	}
	s := step(CreatePods, want, Args{Pods: n, Template: Fingerprint(want)})
	cause := lifecycle.CauseSpecChange
	if want.Status.Replicas == want.Spec.Replicas {
		cause = lifecycle.CauseFault // they existed before
	}
	return lifecycle.Proceed(withReason(s, cause, "TooFewPods",
		"Creating %s, %d of %d exist.", podCount(n), seen.active(), want.Spec.Replicas))
}

// refusalRetryInterval is the interval between dry runs of a refused template. A quota, a
// policy or a webhook may accept it later, and no watch event reports that.
const refusalRetryInterval = time.Minute

// refusedTemplate blocks if the API server rejects pods of the template, so that no pod is
// deleted.
func refusedTemplate(want *appv1.PodSet, seen World) lifecycle.Decision {
	if !seen.Template.Refuses(Fingerprint(want)) {
		return lifecycle.Decision{}
	}
	return lifecycle.Fail("TemplateRefused", fmt.Sprintf(
		"The API server rejects pods of spec.template: %s. The existing pods stay. Correct spec.template.", seen.Template.Refusal)).Heartbeat(refusalRetryInterval)
}

func outdatedPods(want *appv1.PodSet, seen World) lifecycle.Decision {
	old := seen.Outdated(Fingerprint(want))
	available := seen.available()
	unready := World{Pods: old}.count(func(p *Pod) bool { return !p.Ready })
	n := min(len(old), unready+max(0, available-minAvailable(want)), maxPodsPerStep)
	if n == 0 {
		return lifecycle.Decision{}
	}
	// Disruptive, also if only unready pods go: an unready pod may still serve, and a step that a policy lets through while
	// it holds the same change of the next pod would create and delete pods in turn.
	s := step(ReplaceOutdated, want, Args{Pods: n, Template: Fingerprint(want)})
	s.Class = lifecycle.ClassDisruptive
	return lifecycle.Proceed(withReason(s, lifecycle.CauseSpecChange, "TemplateChanged",
		"Replacing %s of %d that have an earlier template: %s.", podCount(n), len(old), nameList(PodsToDelete(old, n))))
}

// podProblem reports a problem that keeps a pod from running, the most specific cause first.
func podProblem(seen World, now time.Time) lifecycle.Decision {
	for _, known := range []struct {
		trouble lifecycle.PodProblem
		remedy  string
	}{
		{lifecycle.PodProblemImagePullBackOff, "Correct the image in spec.template, or give imagePullSecrets; Kubernetes retries the pull."},
		{lifecycle.PodProblemContainerCannotStart, "Correct spec.template or the node."},
		{lifecycle.PodProblemCrashLoopBackOff, "Read its logs with kubectl logs --previous, and correct spec.template."},
		{lifecycle.PodProblemUnschedulable, "Add nodes, or change the scheduling requirements in spec.template."},
	} {
		if p, ok := seen.withProblem(known.trouble); ok && !now.Before(p.blockAfter()) {
			return lifecycle.Block(string(known.trouble), fmt.Sprintf("Pod %s: %s. %s", p.Name, p.Detail, known.remedy))
		}
	}
	return lifecycle.Decision{}
}

// schedulingGrace is how long a pod may stay unschedulable before the set is blocked: an
// autoscaler needs time to add a node.
const schedulingGrace = 30 * time.Second

// blockAfter returns the time until which the pod's problem may resolve itself.
func (p *Pod) blockAfter() time.Time {
	if p.Problem == lifecycle.PodProblemUnschedulable {
		return p.Since.Add(schedulingGrace)
	}
	return time.Time{}
}

func podsInBackoff(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	resting := seen.filter(inBackoff(now))
	if len(resting) == 0 {
		return lifecycle.Decision{}
	}
	soonest := &Finished(World{Pods: resting}, 1)[0]
	return lifecycle.WaitFor(withReason(step(backoffOver, want, Args{Pods: len(resting)}), lifecycle.CauseFault, "PodsEndEarly",
		"%s finished soon after the start again: %s. They are replaced after an increasing backoff. See their logs.",
		podCount(len(resting)), nameList(resting)), soonest.FinishedAt).Until(soonest.replaceAt())
}

func startingPods(want *appv1.PodSet, seen World) lifecycle.Decision {
	available := seen.available()
	if available >= int(want.Spec.Replicas) {
		return lifecycle.Decision{}
	}
	wait := lifecycle.WaitFor(withReason(step(podsReady, want, Args{Pods: int(want.Spec.Replicas) - available}), lifecycle.CauseSpecChange, "PodsStarting",
		"%d of %d pods are ready; the others are starting.", available, want.Spec.Replicas), time.Time{})
	if p, ok := seen.withProblem(lifecycle.PodProblemUnschedulable); ok {
		return wait.Until(p.blockAfter())
	}
	return wait
}

func allAvailable(want *appv1.PodSet) lifecycle.Decision {
	if want.Spec.Replicas == 0 {
		return lifecycle.Settled("ScaledToZero", "spec.replicas is 0. Set spec.replicas to run pods.")
	}
	return lifecycle.Settled("AllAvailable", fmt.Sprintf("All %d pods are available.", want.Spec.Replicas))
}
