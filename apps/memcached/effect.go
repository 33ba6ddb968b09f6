package memcached

import (
	"fmt"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Names of waits. Memcached has no steps.
const (
	// rolledOut waits until the Deployment has its pods and they are ready.
	rolledOut = "RolledOut"
	// nodeFound waits until the pod is scheduled.
	nodeFound = "NodeFound"
)

// Steps declares what the planner waits for.
func Steps() []lifecycle.StepType {
	return []lifecycle.StepType{{Name: rolledOut, Wait: true}, {Name: nodeFound, Wait: true}}
}

// Effect returns the world after a successful wait.
func (Planner) Effect(want *cachev1.Memcached, seen World, step lifecycle.Step) (during, after World) {
	if step.Name == nodeFound {
		return seen, withNode(seen, step.Target)
	}
	size := want.Spec.Size
	after.Rollout = Rollout{Current: true, Updated: size, Total: size}
	for i := range size {
		after.Pods = append(after.Pods, Pod{Name: fmt.Sprintf("%s-%d", step.Target, i), Ready: true})
	}
	return seen, after
}

func withNode(seen World, name string) World {
	after := World{Rollout: seen.Rollout}
	for _, p := range seen.Pods {
		if p.Name == name {
			p = Pod{Name: name}
		}
		after.Pods = append(after.Pods, p)
	}
	return after
}
