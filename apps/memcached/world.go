package memcached

import (
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
	// Leaving says that it is being deleted.
	Leaving bool
	// Trouble is what hinders it.
	Trouble lifecycle.Trouble
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

// inTrouble returns the first pod with the trouble.
func (w World) inTrouble(t lifecycle.Trouble) (Pod, bool) {
	for _, p := range w.Pods {
		if p.Trouble == t && !p.Leaving {
			return p, true
		}
	}
	return Pod{}, false
}
