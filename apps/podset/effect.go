package podset

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Effect returns the world during and after each step.
func (Planner) Effect(_ *appv1.PodSet, seen World, step lifecycle.Step) (during, after World) {
	args, err := lifecycle.ArgsOf[Args](step)
	if err != nil {
		return seen, seen
	}
	switch n := args.Pods; step.Name {
	case Release:
		after = without(seen, (*Pod).stray)
	case Adopt:
		after = adopted(seen, args.Template)
	case DeletePods:
		after = terminating(seen, PodsToDelete(seen.Actives(), n))
	case ReplaceOutdated:
		after = terminating(seen, PodsToDelete(seen.Outdated(args.Template), n))
	case ReplaceFinished:
		finished := Finished(seen, args.Finished)
		after = withNewPods(without(seen, isOneOf(finished)), Replacements(step.Target, seen, finished, n), args.Template)
	case CreatePods:
		after = withNewPods(seen, NewPods(step.Target, seen, n), args.Template)
	case podsReady:
		after = afterStart(seen)
	case backoffOver:
		after = afterBackoff(seen)
	default:
		after = seen
	}
	return after, after
}

func isOneOf(pods []Pod) func(*Pod) bool {
	names := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		names[p.UID] = true
	}
	return func(p *Pod) bool { return names[p.UID] }
}

func without(seen World, gone func(*Pod) bool) World {
	return World{Pods: seen.filter(func(p *Pod) bool { return !gone(p) }), Template: seen.Template}
}

// each returns the world with the change applied to each pod.
func each(seen World, change func(*Pod)) World {
	pods := slices.Clone(seen.Pods)
	for i := range pods {
		change(&pods[i])
	}
	return World{Pods: pods, Template: seen.Template}
}

func adopted(seen World, template string) World {
	return each(seen, func(p *Pod) {
		if p.orphan() {
			p.Owned, p.Template = true, template
		}
	})
}

func terminating(seen World, pods []Pod) World {
	selected := isOneOf(pods)
	return each(seen, func(p *Pod) { p.Terminating = p.Terminating || selected(p) })
}

// withNewPods returns the world with new pods, which have not started yet.
func withNewPods(seen World, added []NewPod, template string) World {
	pods := slices.Clone(seen.Pods)
	for _, b := range added {
		pods = append(pods, Pod{
			Name: b.Name, UID: types.UID("new " + b.Name), Owned: true, Matches: true,
			Template: template, Attempt: b.Attempt,
		})
	}
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return World{Pods: pods, Template: seen.Template}
}

// afterStart returns the world in which starting pods are ready and terminating pods are
// gone.
func afterStart(seen World) World {
	return each(without(seen, func(p *Pod) bool { return p.Terminating }), func(p *Pod) {
		if p.Active() {
			p.Phase, p.Ready, p.Problem, p.Detail = PhaseRunning, true, lifecycle.PodProblemNone, ""
		}
	})
}

// afterBackoff returns the world after all backoffs.
func afterBackoff(seen World) World {
	return each(seen, func(p *Pod) {
		if p.finished() {
			p.Attempt = 0
		}
	})
}
