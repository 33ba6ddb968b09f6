package memcached

import (
	"slices"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// World is one instance as observed.
type World struct {
	Rollout Rollout
	// Pods are sorted by name.
	Pods []Pod
}

// Rollout is how far the Deployment is.
type Rollout struct {
	// Current says that the rest is about the Deployment's present spec.
	Current bool
	// Template is the digest of the pod's template that the Deployment was made with;
	// empty if it does not say.
	Template string
	// Updated and Total count pods of the present template, and all.
	Updated, Total int32
	// Refused is why the API server does not let pods be created; empty if it does.
	Refused string
	// Stuck is set when the rollout has made no progress for its deadline.
	Stuck bool
}

// Pod is one memcached server.
type Pod struct {
	Name string
	// Ready says that it answers.
	Ready bool
	// New says that it is of the Deployment's present template, while pods of another are
	// there.
	New bool
	// Leaving says that it is being deleted.
	Leaving bool
	// Trouble is what hinders it.
	Trouble lifecycle.PodProblem
	// Detail is Kubernetes' own words about the trouble.
	Detail string
	// Since is when it began to be as it is.
	Since time.Time
}

// answering counts the pods that answer and will stay.
func (w World) answering() int32 {
	var n int32
	for _, p := range w.Pods {
		if p.Ready && !p.Leaving {
			n++
		}
	}
	return n
}

// staying counts the pods that are not being deleted.
func (w World) staying() int32 {
	var n int32
	for _, p := range w.Pods {
		if !p.Leaving {
			n++
		}
	}
	return n
}

// renewing says that pods of two templates are there.
func (w World) renewing() bool {
	return slices.ContainsFunc(w.Pods, func(p Pod) bool { return p.New })
}

// inTrouble returns the first pod with the trouble. Those that are being replaced do not
// count.
func (w World) inTrouble(t lifecycle.PodProblem) (Pod, bool) {
	renewing := w.renewing()
	for _, p := range w.Pods {
		if p.Trouble == t && !p.Leaving && p.New == renewing {
			return p, true
		}
	}
	return Pod{}, false
}
