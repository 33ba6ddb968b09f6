package podset

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// Effect says what each step does to the pods.
func (Planner) Effect(seen World, step lifecycle.Step) (during, after World) {
	n := Count(step)
	switch step.Name {
	case Release:
		after = without(seen, (*Pod).stray)
	case Adopt:
		after = adopted(seen, step.Args[argTemplate])
	case DeletePods:
		after = leaving(seen, PodsToDelete(seen.Actives(), n))
	case ReplaceOutdated:
		after = leaving(seen, PodsToDelete(seen.Outdated(step.Args[argTemplate]), n))
		during = World{Pods: after.Pods, Least: number(step, argLeast)}
		return during, after
	case ReplaceFinished:
		departed := Finished(seen, Removed(step))
		after = born(without(seen, among(departed)), Replacements(step.Target, seen, departed, n), step)
	case CreatePods:
		after = born(seen, NewPods(step.Target, seen, n), step)
	case podsReady:
		after = settled(seen)
	case pauseOver:
		after = rested(seen)
	default:
		after = seen
	}
	return after, after
}

func among(pods []Pod) func(*Pod) bool {
	names := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		names[p.UID] = true
	}
	return func(p *Pod) bool { return names[p.UID] }
}

func without(seen World, gone func(*Pod) bool) World {
	return World{Pods: seen.those(func(p *Pod) bool { return !gone(p) }), Refusal: seen.Refusal}
}

// each is the world with each pod as the change makes it.
func each(seen World, change func(*Pod)) World {
	pods := slices.Clone(seen.Pods)
	for i := range pods {
		change(&pods[i])
	}
	return World{Pods: pods, Refusal: seen.Refusal}
}

func adopted(seen World, template string) World {
	return each(seen, func(p *Pod) {
		if p.orphan() {
			p.Owned, p.Template = true, template
		}
	})
}

func leaving(seen World, victims []Pod) World {
	goes := among(victims)
	return each(seen, func(p *Pod) { p.Leaving = p.Leaving || goes(p) })
}

// born is the world with new pods, which have not started yet.
func born(seen World, births []NewPod, step lifecycle.Step) World {
	pods := slices.Clone(seen.Pods)
	for _, b := range births {
		pods = append(pods, Pod{
			Name: b.Name, UID: types.UID("new " + b.Name), Owned: true, Matches: true,
			Template: step.Args[argTemplate], Attempt: b.Attempt,
		})
	}
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return World{Pods: pods}
}

// settled is the world when what starts is ready, and what leaves is gone.
func settled(seen World) World {
	return each(without(seen, func(p *Pod) bool { return p.Leaving }), func(p *Pod) {
		if p.Active() {
			p.Phase, p.Ready, p.Trouble, p.Detail = Running, true, lifecycle.PodProblemNone, ""
		}
	})
}

// rested is the world when the pauses are over.
func rested(seen World) World {
	return each(seen, func(p *Pod) {
		if p.ended() {
			p.Attempt = 0
		}
	})
}
