package podset

import (
	"fmt"
	"strconv"
	"time"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Next is the runbook: whose pods are whose, how many there are, and whether they work.
func (Planner) Next(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	return lifecycle.First(
		strays(want, seen),          // what left the set belongs to whoever took it out
		orphans(want, seen),         // what joined it counts
		tooManyPods(want, seen),     // never more than asked for
		refusedTemplate(seen),       // no pod goes for one that cannot come
		endedPods(want, seen, now),  // an ended pod is none, and another takes its place
		tooFewPods(want, seen, now), // new ones under names that nobody has
		outdatedPods(want, seen),    // those that do not work first, then as many as may be away
		hindered(seen, now),         // a name, a node or a container is wrong
		endingPods(want, seen, now), // what ends again and again is replaced less and less often
		startingPods(want, seen),    // otherwise it only takes time
		everythingIsThere(want),
	)
}

func strays(want *appv1.PodSet, seen World) lifecycle.Decision {
	all := seen.Strays()
	if len(all) == 0 {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(because(step(Release, want, len(all)), lifecycle.CauseDrift, "LabelsChanged",
		"Letting go of %s: without the labels of this set they are not its pods.", listed(all)))
}

func orphans(want *appv1.PodSet, seen World) lifecycle.Decision {
	all := seen.Orphans()
	if len(all) == 0 {
		return lifecycle.Decision{}
	}
	s := step(Adopt, want, len(all))
	s.Args[argTemplate] = Fingerprint(want)
	return lifecycle.Proceed(because(s, lifecycle.CauseDrift, "LabelsMatch",
		"Adopting %s: the labels are those of this set, and nobody controls them.", listed(all)))
}

func tooManyPods(want *appv1.PodSet, seen World) lifecycle.Decision {
	active := seen.active()
	n := min(active-int(want.Spec.Replicas), most)
	if n <= 0 {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(because(step(DeletePods, want, n), lifecycle.CauseSpecChange, "TooManyPods",
		"Deleting %s of %d, %d are wanted: %s.", counted(n), active, want.Spec.Replicas, listed(PodsToDelete(seen.Actives(), n))))
}

// lacking is how many pods may be made now: the ended ones whose time has not come keep
// their places.
func lacking(want *appv1.PodSet, seen World, now time.Time) int {
	return max(0, int(want.Spec.Replicas)-seen.active()-seen.count(resting(now)))
}

func endedPods(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	ended := seen.count((*Pod).ended)
	if seen.active() < int(want.Spec.Replicas) {
		ended -= seen.count(resting(now)) // the others are kept until they are replaced, as a memory
	}
	ended = min(ended, most)
	if ended == 0 {
		return lifecycle.Decision{}
	}
	n := min(ended, lacking(want, seen, now))
	s := step(ReplaceFinished, want, n)
	s.Args[argEnded], s.Args[argTemplate] = strconv.Itoa(ended), Fingerprint(want)
	return lifecycle.Proceed(because(s, lifecycle.CauseFault, "PodsEnded",
		"Removing %s that ended (%s) and making %d in their place.", counted(ended), listed(Finished(seen, ended)), n))
}

func tooFewPods(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	n := min(lacking(want, seen, now), most)
	if n == 0 {
		return lifecycle.Decision{}
	}
	s := step(CreatePods, want, n)
	s.Args[argTemplate] = Fingerprint(want)
	cause := lifecycle.CauseSpecChange
	if len(want.Status.PodNames) == int(want.Spec.Replicas) {
		cause = lifecycle.CauseFault // they have been there already
	}
	return lifecycle.Proceed(because(s, cause, "TooFewPods",
		"Making %s, %d of %d are there.", counted(n), seen.active(), want.Spec.Replicas))
}

// askAgain is how often a refused template is tried again: a quota, a policy or a webhook
// may accept it later, and no watch tells of that.
const askAgain = time.Minute

// refusedTemplate takes nothing away for a template of which the API server accepts no pod.
func refusedTemplate(seen World) lifecycle.Decision {
	if seen.Refusal == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.Fail("TemplateRefused", fmt.Sprintf(
		"The API server accepts no pod of spec.template: %s. The present pods stay. Correct spec.template.", seen.Refusal)).Heartbeat(askAgain)
}

func outdatedPods(want *appv1.PodSet, seen World) lifecycle.Decision {
	old := seen.Outdated(Fingerprint(want))
	available := seen.available()
	idle := World{Pods: old}.count(func(p *Pod) bool { return !p.Ready })
	n := min(len(old), idle+max(0, available-promise(want)), most)
	if n == 0 {
		return lifecycle.Decision{}
	}
	s := step(ReplaceOutdated, want, n)
	if n > idle {
		s.Class = lifecycle.ClassDisruptive
	}
	s.Args[argTemplate] = Fingerprint(want)
	s.Args[argLeast] = strconv.Itoa(min(available, promise(want)))
	return lifecycle.Proceed(because(s, lifecycle.CauseSpecChange, "TemplateChanged",
		"Replacing %s of %d that have an earlier template: %s.", counted(n), len(old), listed(PodsToDelete(old, n))))
}

// hindered says what keeps a pod from working, the surest cause first.
func hindered(seen World, now time.Time) lifecycle.Decision {
	for _, known := range []struct {
		trouble lifecycle.PodProblem
		remedy  string
	}{
		{lifecycle.PodProblemImagePullBackOff, "Correct the image in spec.template, or give imagePullSecrets; the pull is tried again by itself."},
		{lifecycle.PodProblemContainerCannotStart, "Correct spec.template or the node."},
		{lifecycle.PodProblemCrashLoopBackOff, "See what it says with: kubectl logs --previous, and correct spec.template."},
		{lifecycle.PodProblemUnschedulable, "Add nodes, or change what spec.template asks of them."},
	} {
		if p, ok := seen.inTrouble(known.trouble); ok && !now.Before(p.patience()) {
			return lifecycle.Block(string(known.trouble), fmt.Sprintf("Pod %s: %s. %s", p.Name, p.Detail, known.remedy))
		}
	}
	return lifecycle.Decision{}
}

// schedulingGrace is how long a pod may look for a node before it counts as hindered:
// an autoscaler needs a while to bring one.
const schedulingGrace = 30 * time.Second

// patience is until when the pod's trouble may pass by itself.
func (p *Pod) patience() time.Time {
	if p.Trouble == lifecycle.PodProblemUnschedulable {
		return p.Since.Add(schedulingGrace)
	}
	return time.Time{}
}

func endingPods(want *appv1.PodSet, seen World, now time.Time) lifecycle.Decision {
	resting := seen.those(resting(now))
	if len(resting) == 0 {
		return lifecycle.Decision{}
	}
	soonest := &Finished(World{Pods: resting}, 1)[0]
	return lifecycle.WaitFor(because(step(pauseOver, want, len(resting)), lifecycle.CauseFault, "PodsEndEarly",
		"%s ended soon after the start, and not for the first time: %s. They are replaced after a pause that grows; see their logs.",
		counted(len(resting)), listed(resting)), soonest.Gone).Until(soonest.again())
}

func startingPods(want *appv1.PodSet, seen World) lifecycle.Decision {
	available := seen.available()
	if available >= int(want.Spec.Replicas) {
		return lifecycle.Decision{}
	}
	wait := lifecycle.WaitFor(because(step(podsReady, want, int(want.Spec.Replicas)-available), lifecycle.CauseSpecChange, "PodsStarting",
		"%d of %d pods are ready; the others are starting.", available, want.Spec.Replicas), time.Time{})
	if p, ok := seen.inTrouble(lifecycle.PodProblemUnschedulable); ok {
		return wait.Until(p.patience())
	}
	return wait
}

func everythingIsThere(want *appv1.PodSet) lifecycle.Decision {
	if want.Spec.Replicas == 0 {
		return lifecycle.Settled("ScaledToZero", "No pod is wanted; set spec.replicas to have some.")
	}
	return lifecycle.Settled("AllAvailable", fmt.Sprintf("All %d pods are available.", want.Spec.Replicas))
}
