package memcached

import (
	"fmt"
	"strconv"

	"github.com/governor-dev/governor/lifecycle"
)

// What is waited for. Memcached has no steps.
const (
	// rolledOut: the Deployment has the pods it should have, and they answer.
	rolledOut = "RolledOut"
	// nodeFound: a node was found for the pod.
	nodeFound = "NodeFound"
)

// Effect says how a wait ends well.
func (Planner) Effect(seen World, step lifecycle.Step) (during, after World) {
	if step.Name == nodeFound {
		return seen, withNode(seen, step.Target)
	}
	size, err := strconv.ParseInt(step.Args["size"], 10, 32)
	if err != nil {
		return seen, seen
	}
	after.Rollout = Rollout{Current: true, Updated: int32(size), Total: int32(size)}
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
